//! Names that derive from a turn: of messages, pauses and idempotency keys. Never from a provider's call id.

use std::{
    hash::{BuildHasher, RandomState},
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use crate::store::CallKey;

/// Milliseconds since 1970.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A new id: time first, so that ids sort by age, then chance.
pub fn new_id(prefix: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    // The standard library seeds each RandomState from the system's randomness.
    let chance = RandomState::new().hash_one((std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    format!("{prefix}{}{}", base32(now_ms().unsigned_abs(), 9), base32(chance, 9))
}

fn base32(mut number: u64, digits: usize) -> String {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let mut text = vec![b'0'; digits];
    for place in text.iter_mut().rev() {
        *place = DIGITS.get((number % 32) as usize).copied().unwrap_or(b'0');
        number /= 32;
    }
    String::from_utf8(text).unwrap_or_default()
}

/// A name inside a turn: numbers behind a mark, with dots or dashes between them.
fn named(turn: &str, mark: &str, numbers: &[u32], between: char) -> String {
    const DIGITS: usize = 11;
    let mut name = String::with_capacity(turn.len() + mark.len() + numbers.len() * DIGITS);
    name.push_str(turn);
    name.push_str(mark);
    for (place, number) in numbers.iter().enumerate() {
        if place > 0 {
            name.push(between);
        }
        match char::from_digit(*number, 10) {
            Some(digit) => name.push(digit),
            None => name.push_str(&number.to_string()),
        }
    }
    name
}

/// The id of the turn's n-th input message.
pub(crate) fn input_id(turn: &str, n: usize) -> String {
    named(turn, "/u", &[u32::try_from(n).unwrap_or(u32::MAX)], '.')
}

/// The id of the turn's n-th reply.
pub(crate) fn reply_id(turn: &str, n: u32) -> String {
    named(turn, "/a", &[n], '.')
}

/// The id of the message with a call's result; a full result that was cut for the model is kept under it.
pub fn result_id(turn: &str, key: CallKey) -> String {
    named(turn, "/t", &[key.batch, key.idx], '.')
}

/// The turn that a message id names, if it was made by one.
pub fn turn_of(message_id: &str) -> Option<&str> {
    message_id.split_once('/').map(|(turn, _)| turn)
}

/// The id of a call's pause. `round` tells several pauses of one call apart.
pub(crate) fn pause_id(turn: &str, key: CallKey, round: u32) -> String {
    match round {
        0 => format!("{turn}.{}.{}", key.batch, key.idx),
        _ => format!("{turn}.{}.{}.{round}", key.batch, key.idx),
    }
}

/// The key under which a call's body may run more than once with the effect of once.
pub(crate) fn idempotency_key(turn: &str, key: CallKey) -> String {
    named(turn, "-", &[key.batch, key.idx], '-')
}

/// A hash of a text, in hexadecimal: 32 digits are enough to tell arguments and schemas apart.
pub fn hash(text: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |four_bits: u8| DIGITS.get(usize::from(four_bits)).copied().map_or('0', char::from);
    let hash = hmac_sha256::Hash::hash(text.as_bytes());
    hash.iter().take(16).flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

//! Words for the end of a reply: what lets calls run, what does not, and which of several counts.

use super::*;

fn reason(words: &[&str]) -> Result<Option<FinishReason>, Error> {
    let mut ending = Ending::default();
    words.iter().for_each(|word| ending.take((*word).to_owned()));
    ending.reason(&Origin { provider: "p".into(), model: "m".into() })
}

#[test]
fn a_word_that_nobody_knows_is_no_good_end() {
    for word in ["abort", "timeout", "cancelled", "unknown", "max_length", "token_limit", "pause_turn", "stopped early"]
    {
        assert_eq!(reason(&[word]).unwrap(), Some(FinishReason::Other), "{word}");
    }
    for word in ["sensitive", "SAFETY", "content_filter", "content_filter: SAFETY"] {
        assert_eq!(reason(&[word]).unwrap(), Some(FinishReason::ContentFilter), "{word}");
    }
    for word in ["length", "MAX_TOKENS", "max_output_tokens", "model_length", "model_context_window_exceeded"] {
        assert_eq!(reason(&[word]).unwrap(), Some(FinishReason::Length), "{word}");
    }
    for word in ["stop", "eos", "eos_token", "end_turn", "stop_sequence"] {
        assert_eq!(reason(&[word]).unwrap(), Some(FinishReason::Stop), "{word}");
    }
    for word in ["tool_calls", "function_call", "tool_use"] {
        assert_eq!(reason(&[word]).unwrap(), Some(FinishReason::ToolCalls), "{word}");
    }
}

#[test]
fn what_was_cut_or_failed_stays_so_whatever_comes_behind() {
    for after in ["stop", "tool_calls", "abort", "null", ""] {
        assert_eq!(reason(&["length", after]).unwrap(), Some(FinishReason::Length), "{after}");
        assert_eq!(reason(&["sensitive", after]).unwrap(), Some(FinishReason::ContentFilter), "{after}");
        assert_eq!(reason(&["refusal", after]).unwrap(), Some(FinishReason::Refusal), "{after}");
        assert_eq!(reason(&["network_error", after]).unwrap_err().code(), Some("network_error"), "{after}");
    }
    assert_eq!(reason(&["stop", "length"]).unwrap(), Some(FinishReason::Length));
    assert_eq!(reason(&["stop", "abort"]).unwrap(), Some(FinishReason::Other));
    assert_eq!(reason(&["in_progress", "stop"]).unwrap(), Some(FinishReason::Stop));
}

#[test]
fn a_word_for_no_word_is_none() {
    assert_eq!(reason(&["null", " ", "NULL", ""]).unwrap(), None);
    assert_eq!(reason(&["stop", "null"]).unwrap(), Some(FinishReason::Stop));
}

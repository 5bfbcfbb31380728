//! What is forgotten, and when.

use proptest::{collection::vec, prelude::*};

use super::Lru;

#[test]
fn the_longest_unused_goes_first() {
    let mut lru = Lru::new(10);
    let has = |lru: &mut Lru<i32>, key| lru.get(key).copied();
    lru.insert("a", 1, 4);
    lru.insert("b", 2, 4);
    assert_eq!(lru.get("a"), Some(&1));
    lru.insert("c", 3, 4);
    assert_eq!((has(&mut lru, "a"), has(&mut lru, "b"), has(&mut lru, "c")), (Some(1), None, Some(3)));
    lru.insert("d", 4, 11);
    assert_eq!((has(&mut lru, "d"), lru.weight()), (Some(4), 11), "too heavy by itself: everything else goes for it");
    lru.insert("a", 5, 9);
    assert_eq!((has(&mut lru, "a"), has(&mut lru, "d")), (Some(5), None));
    let mut nothing = Lru::new(0);
    nothing.insert("a", 1, 1);
    assert_eq!(nothing.get("a"), None);
}

proptest! {
    /// A plain list, newest use last, is the model.
    #[test]
    fn like_a_list(steps in vec((0..3u8, 0..6u8, 0..8usize), 0..60)) {
        let (mut lru, mut list) = (Lru::new(12), Vec::<(String, u8, usize)>::new());
        for (what, key, weight) in steps {
            let name = key.to_string();
            let place = list.iter().position(|(known, ..)| *known == name);
            match what {
                0 => {
                    place.map(|at| list.remove(at));
                    while list.iter().map(|(.., weight)| weight).sum::<usize>() + weight > 12 {
                        list.remove(0);
                    }
                    list.push((name.clone(), key, weight));
                    lru.insert(&name, key, weight);
                }
                1 => {
                    let found = place.map(|at| list.remove(at));
                    prop_assert_eq!(lru.get(&name).copied(), found.as_ref().map(|(_, value, _)| *value));
                    list.extend(found);
                }
                _ => prop_assert_eq!(lru.remove(&name), place.map(|at| list.remove(at).1)),
            }
            prop_assert_eq!(lru.weight(), list.iter().map(|(.., weight)| weight).sum::<usize>());
        }
    }
}

//! The rules of neutral messages (`HI`), which are this project's own.

super::super::rule::rules! {
    ANSWERED = "HI-01", "hist.paired",
        "Each batch of calls is followed at once by its results, in the order of the calls.",
        "M6";
    ANSWERS = "HI-02", "hist.paired",
        "Each result answers a call of the batch before it, once.",
        "M6";
    STARTS_USER = "HI-03", "hist.starts_user",
        "The first message that is not a system message is the user's.",
        "M5";
}

//! Errors that a stream holds beside its events, over a connection.

use super::*;

// W5, W6: also of an error that a broken stream holds beside its events.
#[tokio::test]
async fn an_error_beside_the_events_is_repeated_only_before_the_first() {
    let bare = r#"{"error": {"type": "overloaded_error", "message": "busy"}}"#;
    let broken = |begin: &str| {
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-request-id: r-1\r\ncontent-length: 99999\r\n\r\n";
        Answer::ThenClose(format!("{head}{begin}{bare}"))
    };
    let server = Server::start([broken(""), stream(&[text("hi"), end()])]).await;
    let (request, heard) = listening();
    assert_eq!(said(&server.model().chat(request).await.unwrap()), "hi");
    assert_eq!((texts(&heard).len(), server.requests().len()), (1, 2));

    let server = Server::start([broken(&sse(&[text("half")])), reply("never")]).await;
    let (request, _) = listening();
    let error = server.model().chat(request).await.unwrap_err();
    assert_eq!((error.kind(), error.message(), error.request_id()), (ErrorKind::Overloaded, "busy", Some("r-1")));
    assert_eq!((error.partial_text(), server.requests().len()), (Some("half"), 1));
}

//! Every decision, on every place in a batch, from every place where a paused turn can be: the same comes of it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails panics")]

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use cepa_agent::{Agent, Decision, Decisions, PauseState, PausedState, Texts, TurnOptions, TurnResult, TurnStatus};
use cepa_core::{Message, Tool, ToolFlags, ToolOutput, ToolSpec, ToolStatus, pairing};
use cepa_store::{Options, Sqlite, Synchronous};
use cepa_testkit::scripted::{Reply, ScriptedModel};

/// What a person says.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Says {
    Approve,
    Edit,
    Reject,
    RejectWithReason,
    Reply,
}

/// Which calls of the batch ask.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Asks {
    First,
    Second,
    Both,
}

/// Where the paused turn is between the pause and the decision.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kept {
    /// In the process that began it.
    InProcess,
    /// In the database; another process, with a handle and an agent of its own, decides.
    OtherProcess,
    /// In the caller's hand, as JSON; the agent has no memory.
    PlainData,
}

const SAYS: [Says; 5] = [Says::Approve, Says::Edit, Says::Reject, Says::RejectWithReason, Says::Reply];
const ASKS: [Asks; 3] = [Asks::First, Asks::Second, Asks::Both];
const KEPT: [Kept; 3] = [Kept::InProcess, Kept::OtherProcess, Kept::PlainData];

/// The arguments as the model writes them: digits and spaces survive.
const ARGS: [&str; 2] = [r#"{ "n": 1.10 }"#, r#"{"n":12345678901234567890123}"#];
const EDITED: &str = r#"{"n": 9.0}"#;

impl Asks {
    fn asks(self, call: usize) -> bool {
        matches!((self, call), (Self::Both, _) | (Self::First, 0) | (Self::Second, 1))
    }
}

impl Says {
    fn decision(self) -> Decision {
        match self {
            Self::Approve => Decision::Approve,
            Self::Edit => Decision::edit(EDITED).unwrap(),
            Self::Reject => Decision::Reject { reason: None },
            Self::RejectWithReason => Decision::Reject { reason: Some("too much".into()) },
            Self::Reply => Decision::Reply { content: "by hand".into() },
        }
    }

    /// What the model reads of a call that asked, and how it ended.
    fn leaves(self, call: usize) -> (ToolStatus, String) {
        let texts = Texts::default();
        match self {
            Self::Approve => (ToolStatus::Ok, format!("ran {}", ARGS[call])),
            Self::Edit => (ToolStatus::Ok, format!("(Run with changed arguments: {EDITED})\nran {EDITED}")),
            Self::Reject => (ToolStatus::Rejected, texts.rejected),
            Self::RejectWithReason => (ToolStatus::Rejected, texts.rejected_because.replace("{reason}", "too much")),
            Self::Reply => (ToolStatus::Ok, "by hand".into()),
        }
    }

    /// The arguments with which the body of a call that asked is entered, if it is.
    fn runs_with(self, call: usize) -> Option<&'static str> {
        match self {
            Self::Approve => Some(ARGS[call]),
            Self::Edit => Some(EDITED),
            Self::Reject | Self::RejectWithReason | Self::Reply => None,
        }
    }
}

/// What all processes share: the script, the file, and the note of what ran.
struct World {
    model: ScriptedModel,
    asks: Asks,
    file: Option<PathBuf>,
    ran: Arc<Mutex<Vec<(usize, String)>>>,
}

impl World {
    /// An agent of a process.
    fn agent(&self) -> Agent {
        let tool = |call: usize| {
            let flags = ToolFlags { sensitive: self.asks.asks(call), ..ToolFlags::default() };
            let schema = r#"{"type":"object","properties":{"n":{"type":"number"}},"required":["n"]}"#;
            let spec = ToolSpec::new(["tool0", "tool1"][call], "Does it.", Some(schema)).unwrap().with_flags(flags);
            let ran = self.ran.clone();
            Tool::new(spec, move |args, _| {
                let args = args.as_str().to_owned();
                ran.lock().unwrap().push((call, args.clone()));
                async move { Ok(ToolOutput::new(format!("ran {args}"))) }
            })
        };
        let builder = Agent::builder(self.model.clone()).tools([tool(0), tool(1)]).pausing(true);
        match &self.file {
            Some(file) => {
                let options = Options::default().synchronous(Synchronous::Normal);
                builder.memory(Sqlite::open_with(file, options).unwrap()).conversation_id("c").build().unwrap()
            }
            None => builder.build().unwrap(),
        }
    }
}

async fn decide(world: &World, kept: Kept, agent: Agent, paused: TurnResult, decisions: Decisions) -> TurnResult {
    let options = TurnOptions::new().actor("anna");
    match kept {
        Kept::InProcess => agent.own_conversation().resume_with_options(decisions, options).await.unwrap(),
        Kept::OtherProcess => {
            drop(agent);
            world.agent().own_conversation().resume_with_options(decisions, options).await.unwrap()
        }
        Kept::PlainData => {
            let plain = serde_json::to_string(&paused.state.unwrap()).unwrap();
            drop(agent);
            let state: PausedState = serde_json::from_str(&plain).unwrap();
            world.agent().resume_with(state, decisions, options).await.unwrap()
        }
    }
}

async fn case(says: Says, asks: Asks, kept: Kept, blanket: bool) {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("{says:?} × {asks:?} × {kept:?}, blanket: {blanket}");
    let calls = Reply::text("Two things.").call("c1", "tool0", ARGS[0]).call("c2", "tool1", ARGS[1]);
    let world = World {
        model: ScriptedModel::new([calls, Reply::text("done")]),
        asks,
        file: (kept != Kept::PlainData).then(|| folder.path().join("chat.db")),
        ran: Arc::default(),
    };
    let agent = world.agent();
    let paused = agent.chat("go").await.unwrap();
    assert_eq!(paused.status, TurnStatus::Paused, "{name}");
    let waiting: Vec<&str> = paused.pending.iter().map(|pause| pause.tool.as_str()).collect();
    let expected: Vec<&str> = (0..2).filter(|call| asks.asks(*call)).map(|call| ["tool0", "tool1"][call]).collect();
    assert_eq!(waiting, expected, "{name}");
    assert!(world.ran.lock().unwrap().is_empty(), "{name}: a held batch ran");
    for pause in &paused.pending {
        assert_eq!(pause.args.as_str(), ARGS[pause.key.idx as usize], "{name}: shown is what runs");
        assert_eq!(pause.state, PauseState::Pending, "{name}");
    }

    let decisions = if blanket {
        Decisions::All(says.decision())
    } else {
        Decisions::Each(paused.pending.iter().map(|pause| (pause.id.clone(), says.decision())).collect())
    };
    let result = decide(&world, kept, agent, paused, decisions).await;

    assert_eq!((result.status, result.text.as_str()), (TurnStatus::Completed, "done"), "{name}");
    let ends = |call| if asks.asks(call) { says.leaves(call) } else { (ToolStatus::Ok, format!("ran {}", ARGS[call])) };
    let expected: Vec<_> = (0..2)
        .filter_map(|call| {
            let args = if asks.asks(call) { says.runs_with(call) } else { Some(ARGS[call]) };
            args.map(|args| (call, args.to_owned()))
        })
        .collect();
    assert_eq!(*world.ran.lock().unwrap(), expected, "{name}: what ran, in call order");
    let outcomes: Vec<_> = result.records.iter().map(|record| (record.id.as_str(), record.outcome)).collect();
    assert_eq!(outcomes, [("c1", ends(0).0), ("c2", ends(1).0)], "{name}");
    // What the model reads in its second call, in call order.
    let request = world.model.requests().pop().unwrap();
    let read: Vec<_> = request
        .messages
        .messages()
        .filter_map(|message| match message {
            Message::Tool(result) => Some((result.status, result.content.text().into_owned())),
            Message::System(_) | Message::User(_) | Message::Assistant(_) => None,
        })
        .collect();
    assert_eq!(read, [ends(0), ends(1)], "{name}");
    assert_eq!(pairing::validate(&request.messages), Ok(()), "{name}");
}

// H2, H3, H7, L7: in process.
#[tokio::test]
async fn the_approval_matrix() {
    for kept in KEPT {
        for says in SAYS {
            for asks in ASKS {
                case(says, asks, kept, false).await;
                case(says, asks, kept, true).await;
            }
        }
    }
}

// H2, H4: two calls, two different decisions, one after the other, each from another process.
#[tokio::test]
async fn mixed_and_partial_decisions() {
    for kept in [Kept::InProcess, Kept::OtherProcess] {
        for first in SAYS {
            for second in SAYS {
                let folder = tempfile::tempdir().unwrap();
                let calls = Reply::empty().call("c1", "tool0", ARGS[0]).call("c2", "tool1", ARGS[1]);
                let world = World {
                    model: ScriptedModel::new([calls, Reply::text("done")]),
                    asks: Asks::Both,
                    file: Some(folder.path().join("chat.db")),
                    ran: Arc::default(),
                };
                let name = format!("{second:?} for the second, then {first:?} for the first, {kept:?}");
                let agent = world.agent();
                let paused = agent.chat("go").await.unwrap();
                let ids: Vec<String> = paused.pending.iter().map(|pause| pause.id.clone()).collect();
                let one = Decisions::one(&*ids[1], second.decision());
                let still = decide(&world, kept, agent.clone(), paused, one).await;
                assert!(still.is_paused() && still.pending.len() == 1, "{name}");
                assert!(world.ran.lock().unwrap().is_empty(), "{name}: it ran before all was decided");
                let other = Decisions::one(&*ids[0], first.decision());
                let result = decide(&world, kept, agent, still, other).await;
                assert_eq!(result.text, "done", "{name}");
                let outcomes: Vec<_> = result.records.iter().map(|record| record.outcome).collect();
                assert_eq!(outcomes, [first.leaves(0).0, second.leaves(1).0], "{name}");
                let expected: Vec<_> = [first.runs_with(0), second.runs_with(1)]
                    .into_iter()
                    .enumerate()
                    .filter_map(|(call, args)| args.map(|args| (call, args.to_owned())))
                    .collect();
                assert_eq!(*world.ran.lock().unwrap(), expected, "{name}");
            }
        }
    }
}

//! The tools: what each is and does. Each tells when its body is entered and when it ends.

use std::time::Duration;

use cepa_core::{Args, Tool, ToolContext, ToolError, ToolFlags, ToolOutput, ToolSpec};

use crate::{
    facts::Fact,
    model::word,
    program::{Name, Who},
    rows,
    scene::Scene,
};

const ALL: [Name; 14] = [
    Name::Plain,
    Name::Idempotent,
    Name::ReadOnly,
    Name::Concurrent,
    Name::Sensitive,
    Name::SensitivePut,
    Name::Stumbles,
    Name::Slips,
    Name::Flaky,
    Name::Broke,
    Name::Direct,
    Name::Long,
    Name::Hangs,
    Name::Panics,
];

/// How many characters of a result the model is given; what [`Name::Long`] says is longer.
pub(crate) const MAX_CHARS: usize = 200;

/// What a panic of [`Name::Panics`] says; the test's panic hook keeps quiet about it.
pub(crate) const ON_PURPOSE: &str = "it panicked on purpose";

pub(crate) fn flags(name: Name) -> ToolFlags {
    let none = ToolFlags::default;
    match name {
        Name::Idempotent | Name::Flaky => ToolFlags { idempotent: true, ..none() },
        Name::ReadOnly => ToolFlags { read_only: true, ..none() },
        Name::Concurrent => ToolFlags { concurrent: true, ..none() },
        Name::Sensitive => ToolFlags { sensitive: true, ..none() },
        Name::SensitivePut => ToolFlags { sensitive: true, idempotent: true, ..none() },
        Name::Direct => ToolFlags { return_direct: true, ..none() },
        Name::Plain
        | Name::Stumbles
        | Name::Slips
        | Name::Broke
        | Name::Long
        | Name::Hangs
        | Name::Panics
        | Name::Unheard => none(),
    }
}

/// The flags of a tool by its word; none for one that there is not.
pub(crate) fn flags_of(tool: &str) -> ToolFlags {
    ALL.into_iter().find(|name| word(*name) == tool).map(flags).unwrap_or_default()
}

pub(crate) fn tools(who: Who, scene: &Scene) -> impl Iterator<Item = Tool> {
    let scene = scene.clone();
    ALL.into_iter().map(move |name| tool(name, who, scene.clone()))
}

fn tool(name: Name, who: Who, scene: Scene) -> Tool {
    let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#;
    let spec = ToolSpec::new(word(name), "What it does.", Some(schema)).unwrap();
    Tool::new(spec.with_flags(flags(name)), move |args, context| run(name, who, scene.clone(), args, context))
}

async fn run(name: Name, who: Who, scene: Scene, args: Args, context: ToolContext) -> Result<ToolOutput, ToolError> {
    let key = context.idempotency_key().unwrap().to_owned();
    let before = scene.facts().runs(&key).len();
    rows::may_enter(&scene, name, &key, &context, &args);
    let run = scene.facts().number();
    let entered = Fact::Entered { run, key, tool: word(name).to_owned(), args: args.as_str().to_owned() };
    scene.facts().add(entered);
    scene.moment(who).await;
    let done = act(name, before, &args, &context).await;
    let outcome = match &done {
        Ok(output) => Ok(output.content.text().into_owned()),
        Err(error) => Err(error.message.clone()),
    };
    scene.facts().add(Fact::Ended { run, outcome });
    scene.moment(who).await;
    if name == Name::Panics {
        // The facts know how it ended; now it does.
        std::panic::panic_any(ON_PURPOSE);
    }
    done
}

/// What a tool does, when it was entered so often before for this call.
async fn act(name: Name, before: usize, args: &Args, context: &ToolContext) -> Result<ToolOutput, ToolError> {
    let text = format!("{} {}", word(name), args.as_str());
    match name {
        Name::Plain => context.set("last", args.as_str())?,
        Name::Concurrent => tokio::time::sleep(Duration::from_millis(3)).await,
        Name::Stumbles => return Err(ToolError::semantic(text)),
        Name::Slips => return Err(ToolError::transient(text)),
        Name::Flaky if before == 0 => return Err(ToolError::transient(text)),
        Name::Broke if before == 0 => return Err(ToolError::environment(text)),
        Name::Long => return Ok(ToolOutput::new(format!("{text} {}", "so it goes on ".repeat(40)))),
        Name::Panics => return Err(ToolError::semantic(format!("the tool panicked: {ON_PURPOSE}"))),
        Name::Hangs => {
            context.cancel().cancelled().await;
            // Half of them stop when they are told to.
            if args.as_str().bytes().map(u32::from).sum::<u32>() % 2 == 0 {
                return Err(ToolError::semantic(text));
            }
            std::future::pending::<()>().await;
        }
        Name::Idempotent
        | Name::ReadOnly
        | Name::Sensitive
        | Name::SensitivePut
        | Name::Flaky
        | Name::Broke
        | Name::Direct
        | Name::Unheard => {}
    }
    Ok(ToolOutput::new(text))
}

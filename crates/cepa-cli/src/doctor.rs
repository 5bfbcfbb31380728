//! `cepa doctor`: looks at everything that a turn needs, and says what is wrong and what to do.

use std::{
    io::{self, Write},
    time::Duration,
};

use cepa::{
    CancellationToken, Error, TurnStore,
    providers::http::{HttpClient, HttpRequest, HttpSettings},
};
use serde::Deserialize;

use crate::{
    config::Db,
    exit::{Exit, Problem, error_line},
    model::Chosen,
    places::{self, process_env},
    session::Session,
    visible::one_line,
};

/// How long a provider may take to list its models.
const LIMIT: Duration = Duration::from_secs(10);

/// Collects what was found.
struct Report {
    problems: usize,
}

impl Report {
    fn line(&self, mark: &str, what: &str, found: &str) -> Result<(), Problem> {
        let mut out = io::stdout().lock();
        writeln!(out, "{mark:<8}{what:<10}{}", one_line(found, 1_000))?;
        Ok(out.flush()?)
    }
    fn ok(&self, what: &str, found: &str) -> Result<(), Problem> {
        self.line("ok", what, found)
    }
    fn note(&self, what: &str, found: &str) -> Result<(), Problem> {
        self.line("note", what, found)
    }
    fn problem(&mut self, what: &str, error: &Error) -> Result<(), Problem> {
        self.problems += 1;
        self.line("PROBLEM", what, &error_line(error))
    }
}

/// Checks everything.
///
/// # Errors
/// Only what standard output fails with; what is found wrong makes the exit code.
pub(crate) async fn doctor(session: &mut Session) -> Result<Exit, Problem> {
    let mut report = Report { problems: 0 };
    report.ok("version", &format!("cepa {} on {}", env!("CARGO_PKG_VERSION"), std::env::consts::OS))?;
    settings(session, &report)?;
    match session.root() {
        Ok(root) => report.ok("folder", &root.display().to_string())?,
        Err(error) => report.problem("folder", &error)?,
    }
    tools(session, &mut report)?;
    database(session, &mut report).await?;
    let model = session.model().await.cloned();
    match model {
        Ok(model) => check_model(&model, &mut report).await?,
        Err(error) => report.problem("model", &error)?,
    }
    Ok(if report.problems == 0 { Exit::Completed } else { Exit::Failed })
}

fn settings(session: &Session, report: &Report) -> Result<(), Problem> {
    let files = &session.settings.files;
    if files.is_empty() {
        let user = places::user_config(&process_env).map(|path| path.display().to_string()).unwrap_or_default();
        report.note("settings", &format!("none; they would be in cepa.toml here, or in {user}"))?;
    }
    for file in files {
        report.ok("settings", &file.display().to_string())?;
    }
    Ok(())
}

fn tools(session: &Session, report: &mut Report) -> Result<(), Problem> {
    let Ok(root) = session.root() else { return Ok(()) };
    match cepa_cli::tools::ready_tools(&root) {
        Ok(tools) => {
            let names: Vec<&str> = tools.iter().map(cepa::Tool::name).collect();
            report.ok("tools", &names.join(", "))
        }
        Err(error) => report.problem("tools", &error),
    }
}

async fn database(session: &mut Session, report: &mut Report) -> Result<(), Problem> {
    let path = match &session.settings.db {
        Db::File(path) => path.display().to_string(),
        Db::Nowhere => {
            let text = "no HOME and no XDG_DATA_HOME: conversations are kept in memory only; name a file with --db";
            return report.note("database", text);
        }
    };
    match session.existing_store() {
        Ok(None) => report.note("database", &format!("{path}: not there yet; the first turn makes it")),
        Ok(Some(store)) => match counts(&*store).await {
            Ok(found) => report.ok("database", &format!("{path}: {found}")),
            Err(error) => report.problem("database", &error),
        },
        Err(error) => report.problem("database", &error),
    }
}

async fn counts(store: &dyn TurnStore) -> Result<String, Error> {
    let conversations = store.list(0, 100_000).await?.len();
    let waiting = store.pending(None).await?.len();
    let interrupted = store.live_turns(None).await?.iter().filter(|turn| !turn.paused).count();
    Ok(format!("conversations: {conversations}, waiting calls: {waiting}, interrupted turns: {interrupted}"))
}

/// Whether the provider knows the key and the model: it is asked for its list of models, which costs nothing.
async fn check_model(model: &Chosen, report: &mut Report) -> Result<(), Problem> {
    if model.is_offline() {
        return report.note("model", &format!("{} ({})", model.name(), model.why));
    }
    let line = format!("{} ({})", model.name(), model.why);
    let Some(list) = &model.list else { return report.note("model", &format!("{line}; it cannot be checked")) };
    match listed(list).await {
        Ok(names) => {
            let name = model.model.origin().model.to_string();
            match names.contains(&name) {
                true => report.ok("model", &format!("{line}; the server answers and lists it")),
                false => report.note("model", &format!("{line}; the server answers, but does not list this model")),
            }
        }
        Err(error) => {
            report.line("", "", &line)?;
            report.problem("model", &error)
        }
    }
}

async fn listed(list: &crate::model::ModelList) -> Result<Vec<String>, Error> {
    #[derive(Deserialize)]
    struct List {
        #[serde(default)]
        data: Vec<Model>,
    }
    #[derive(Deserialize)]
    struct Model {
        id: String,
    }
    let mut settings = HttpSettings::default();
    settings.connect_timeout = LIMIT;
    settings.response_timeout = LIMIT;
    let mut request = HttpRequest::get(&list.url)?;
    request.headers_mut().extend(list.target.headers.clone());
    let response = HttpClient::new(settings).send(request, &CancellationToken::new()).await?;
    if !response.is_success() {
        return Err(response.into_error(&list.target.origin.provider, list.target.key.as_ref()).await);
    }
    let body = response.collect().await?;
    Ok(serde_json::from_slice::<List>(&body)
        .map(|list| list.data.into_iter().map(|model| model.id).collect())
        .unwrap_or_default())
}

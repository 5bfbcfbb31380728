//! Threads that own the connections: SQLite blocks, the async runtime must not.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
    thread::JoinHandle,
    time::Instant,
};

use cepa_core::{Error, ErrorKind};
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::{
    failure::{Failure, store},
    transaction::{Waiting, Write, Writing},
};

type Job = Box<dyn FnOnce(Result<&mut Connection, Error>) + Send>;
type Open = dyn Fn() -> Result<Connection, Error> + Send + Sync;

/// What is done on a connection.
enum Task {
    /// By itself.
    Job(Job),
    /// In a transaction, which other writes may share.
    Write(Box<dyn Write>),
}

/// The most writes of one transaction: the first waits for the last.
const TOGETHER: usize = 64;

/// One or more threads with a connection each, which take tasks from one queue.
///
/// A caller who stops waiting does not take his task back: it is done or not, as if the process had died.
pub(crate) struct Worker {
    path: Arc<PathBuf>,
    tasks: Option<Sender<Task>>,
    threads: Vec<JoinHandle<()>>,
}

impl Worker {
    /// A thread for a connection that is open and writes.
    pub(crate) fn writer(how: Writing, connection: Connection) -> Result<Self, Error> {
        let reopen = || Err(Error::new(ErrorKind::Store, "the database was closed"));
        let path = how.path.clone();
        Self::start(path, "cepa-store-write", vec![Some(connection)], Arc::new(reopen), Some(Arc::new(how)))
    }

    /// Threads that open their connections when they get their first task, and read.
    pub(crate) fn readers(path: Arc<PathBuf>, threads: usize, open: Arc<Open>) -> Result<Self, Error> {
        let connections = std::iter::repeat_with(|| None).take(threads).collect();
        Self::start(path, "cepa-store-read", connections, open, None)
    }

    fn start(
        path: Arc<PathBuf>,
        name: &str,
        connections: Vec<Option<Connection>>,
        open: Arc<Open>,
        how: Option<Arc<Writing>>,
    ) -> Result<Self, Error> {
        let (tasks, queue) = channel::<Task>();
        let queue = Arc::new(Mutex::new(queue));
        let mut worker = Self { path, tasks: Some(tasks), threads: Vec::new() };
        for connection in connections {
            let (queue, open, how) = (queue.clone(), open.clone(), how.clone());
            let thread = std::thread::Builder::new().name(name.to_owned());
            let thread = thread.spawn(move || work(&queue, connection, &*open, how.as_deref()));
            let thread =
                thread.map_err(|error| store(&worker.path, format_args!("cannot start a thread ({error})")))?;
            worker.threads.push(thread);
        }
        Ok(worker)
    }

    /// Does a job on a connection and waits for it.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, replied) = oneshot::channel();
        let path = self.path.clone();
        let job: Job = Box::new(move |connection| {
            let done = connection.and_then(|connection| job(connection).map_err(|failure| failure.explain(&path)));
            // Nobody listens any more: see above.
            let _ = reply.send(done);
        });
        self.wait(Task::Job(job), replied).await
    }

    /// Does a write in a transaction and waits for its commit.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        job: impl FnMut(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, replied) = oneshot::channel();
        let write = Waiting { queued: Instant::now(), job: Some(job), done: None, reply };
        self.wait(Task::Write(Box::new(write)), replied).await
    }

    async fn wait<T>(&self, task: Task, replied: oneshot::Receiver<Result<T, Error>>) -> Result<T, Error> {
        let gone = || store(&self.path, "the database's thread has stopped; open the database again");
        self.tasks.as_ref().and_then(|tasks| tasks.send(task).ok()).ok_or_else(gone)?;
        replied.await.unwrap_or_else(|_| Err(gone()))
    }
}

fn work(queue: &Mutex<Receiver<Task>>, mut connection: Option<Connection>, open: &Open, how: Option<&Writing>) {
    let mut next = None;
    loop {
        let task = next.take().or_else(|| queue.lock().unwrap_or_else(PoisonError::into_inner).recv().ok());
        match (task, how) {
            (None, _) => return,
            (Some(Task::Job(job)), _) => {
                let opened = match &mut connection {
                    Some(connection) => Ok(connection),
                    none => open().map(|opened| none.insert(opened)),
                };
                // A panic ends the job (its transaction rolls back), not the database.
                let _ = catch_unwind(AssertUnwindSafe(|| job(opened)));
            }
            (Some(Task::Write(first)), Some(how)) => {
                let mut writes = vec![first];
                let queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
                // Only what is there already: nobody waits for company.
                while writes.len() < TOGETHER && next.is_none() {
                    match queue.try_recv() {
                        Ok(Task::Write(write)) => writes.push(write),
                        Ok(job @ Task::Job(_)) => next = Some(job),
                        Err(_) => break,
                    }
                }
                drop(queue);
                if let Some(connection) = &connection {
                    how.all(connection, writes);
                }
            }
            // Readers get no writes; dropped, it tells its caller that nobody is there to do it.
            (Some(Task::Write(_)), None) => {}
        }
    }
}

impl Drop for Worker {
    /// Waits until the queue is empty and the connections are closed: after the last handle is gone, nothing of the
    /// database is left in files beside it.
    fn drop(&mut self) {
        self.tasks = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

//! Threads that own the connections: SQLite blocks, the async runtime must not.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
    thread::JoinHandle,
};

use cepa_core::{Error, ErrorKind};
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::failure::{Failure, store};

type Job = Box<dyn FnOnce(Result<&mut Connection, Error>) + Send>;
type Open = dyn Fn() -> Result<Connection, Error> + Send + Sync;

/// One or more threads with a connection each, which take jobs from one queue.
///
/// A caller who stops waiting does not take his job back: it is done or not, as if the process had died.
pub(crate) struct Worker {
    path: Arc<PathBuf>,
    jobs: Option<Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

impl Worker {
    /// A thread for a connection that is open.
    pub(crate) fn with_connection(path: Arc<PathBuf>, connection: Connection) -> Result<Self, Error> {
        let reopen = || Err(Error::new(ErrorKind::Store, "the database was closed"));
        Self::start(path, "cepa-store-write", vec![Some(connection)], Arc::new(reopen))
    }

    /// Threads that open their connections when they get their first job.
    pub(crate) fn lazy(path: Arc<PathBuf>, threads: usize, open: Arc<Open>) -> Result<Self, Error> {
        let connections = std::iter::repeat_with(|| None).take(threads).collect();
        Self::start(path, "cepa-store-read", connections, open)
    }

    fn start(
        path: Arc<PathBuf>,
        name: &str,
        connections: Vec<Option<Connection>>,
        open: Arc<Open>,
    ) -> Result<Self, Error> {
        let (jobs, queue) = channel::<Job>();
        let queue = Arc::new(Mutex::new(queue));
        let mut worker = Self { path, jobs: Some(jobs), threads: Vec::new() };
        for connection in connections {
            let (queue, open) = (queue.clone(), open.clone());
            let thread = std::thread::Builder::new().name(name.to_owned());
            let thread = thread.spawn(move || work(&queue, connection, &*open));
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
        let gone = || store(&self.path, "the database's thread has stopped; open the database again");
        self.jobs.as_ref().and_then(|jobs| jobs.send(job).ok()).ok_or_else(gone)?;
        replied.await.unwrap_or_else(|_| Err(gone()))
    }
}

fn work(queue: &Mutex<Receiver<Job>>, mut connection: Option<Connection>, open: &Open) {
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        let opened = match &mut connection {
            Some(connection) => Ok(connection),
            none => open().map(|opened| none.insert(opened)),
        };
        // A panic ends the job (its transaction rolls back), not the database.
        let _ = catch_unwind(AssertUnwindSafe(|| job(opened)));
    }
}

impl Drop for Worker {
    /// Waits until the queue is empty and the connections are closed: after the last handle is gone, nothing of the
    /// database is left in files beside it.
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

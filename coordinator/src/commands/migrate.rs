//! `migrate`: brings the store's schema and the broker's queues up to date. Expands only, so what runs goes on; needs an
//! owner's rights, which nothing else does.

use bench_proto::{
    ids::Role,
    task::{QueueName, TOPOLOGY_VERSION},
};
use bench_worker::transport;

use crate::{
    app::App,
    cli::MigrateArgs,
    exit::{CliResult, Exit},
    out,
};

/// Brings the schema of the store and the queues of the broker up to date and prints what was done; may be repeated.
pub(super) async fn run(app: &App, args: &MigrateArgs) -> CliResult {
    transport::warn(app.settings(), transport::to_store(app.settings()));
    // as the store of any verb that begins something: who made it goes on with it
    app.begin_home(true);
    let version = bench_store::migrate(&app.settings().store_url).await?;
    out::result(&format!("store: schema {version}"));
    if let Some(prefix) = &args.roles {
        let names = bench_store::name_roles(&app.settings().store_url, prefix).await?;
        out::result(&format!("store: roles {}", names.join(", ")));
    }
    if args.contract {
        // every step so far only expands: there is nothing that an older build still needs
        out::result("store: nothing to contract at this version");
    }
    if app.settings().queue_url.starts_with("memory:") {
        return Ok(Exit::Done);
    }
    let queue = app.open_queue().await?;
    for pool in &args.pool {
        let queues: Vec<QueueName> = Role::ALL.iter().map(|role| QueueName::new(pool.clone(), *role)).collect();
        queue.declare(&queues).await.map_err(crate::app::queue_error)?;
        let names: Vec<String> = queues.iter().map(QueueName::wire_name).collect();
        out::result(&format!("queue: topology {TOPOLOGY_VERSION}, {}", names.join(", ")));
    }
    queue.close().await;
    Ok(Exit::Done)
}

//! A broker of three nodes loses one.

use std::time::Duration;

use bench_e2e::faults::{SLOTS, Size, Stage};
use bench_testkit::{
    cluster::{Cluster, Setup, wait_until_ready},
    provider::{KEY, Provider},
    rabbitmq::RabbitMqCluster,
};

#[test]
fn a_cluster_of_three_nodes_loses_one_and_then_another() {
    let mut nodes = RabbitMqCluster::start(3).expect("three nodes come up");
    let provider = Provider::start(&["--latency-ms", "300"]);
    let vhost = nodes.make_vhost("test").expect("a virtual host");
    let cluster = Cluster::on(vhost, Setup::default()).with_provider(provider.base_url(), KEY);
    let stage = Stage::new(Size::Middle, provider, cluster);
    // people are spread over the nodes, as a load balancer would
    let worker = |node: usize| {
        let queue = &nodes.vhost(node, "test").worker;
        let mut command = stage.cluster.command("bench-worker", &stage.cluster.database().runtime, queue);
        command.args(["-v", "--name", &format!("worker{node}"), "--concurrency", &SLOTS.to_string()]);
        command.env("OPENAI_BASE_URL", stage.provider.base_url()).env("OPENAI_API_KEY", KEY);
        stage.cluster.spawn(command, &format!("worker{node}"))
    };
    let mut coordinator = stage.cluster.coordinator("coordinator");
    let mut workers = [worker(0), worker(1), worker(2)];
    wait_until_ready(&mut coordinator);
    workers.iter_mut().for_each(wait_until_ready);
    let client = stage.submit(&[]);
    stage.wait_for_percent(15);
    nodes.node(2).kill();
    stage.wait_for_percent(40);
    nodes.node(2).restart().expect("the node rejoins");
    std::thread::sleep(Duration::from_secs(3));
    nodes.node(1).kill();
    stage.check(client, 0);
}

//! The RabbitMQ backend against a real, private broker. Needs the package `rabbitmq-server`; without it these tests fail.
#![cfg(feature = "amqp")]

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, Instant},
};

use bench_proto::{ids::Role, task::QueueName};
use bench_queue::{
    Delivery, Fate, Outgoing, Queue, QueueError,
    conformance::{Fixture, messages, number, receive_all},
    connect, queue_conformance,
};
use bench_testkit::{
    proxy::{Faults, Proxy},
    rabbitmq::RabbitMq,
};
use lapin::{
    BasicProperties, Connection, ConnectionProperties,
    options::{BasicPublishOptions, QueueDeclareOptions, QueueDeleteOptions},
    types::{AMQPValue, FieldTable},
};

queue_conformance!(fixture);

/// One broker for all tests of this process that run at the same time; it ends with the last of them.
fn shared() -> Arc<RabbitMq> {
    static BROKER: Mutex<Weak<RabbitMq>> = Mutex::new(Weak::new());
    let mut broker = BROKER.lock().unwrap_or_else(PoisonError::into_inner);
    broker.upgrade().unwrap_or_else(|| {
        let started = Arc::new(RabbitMq::start().expect("RabbitMQ starts"));
        *broker = Arc::downgrade(&started);
        started
    })
}

/// Starting a broker blocks: not for a runtime's thread.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.expect("no panic")
}

async fn shared_vhost() -> (Arc<RabbitMq>, String) {
    blocking(|| {
        let broker = shared();
        let url = broker.new_vhost().expect("a virtual host");
        (broker, url)
    })
    .await
}

async fn fixture() -> Fixture {
    let (broker, url) = shared_vhost().await;
    Fixture { queue: connect(&url).await.expect("connects"), guard: Box::new(broker) }
}

fn name() -> QueueName {
    QueueName::new("default", Role::Question)
}

async fn declared(url: &str) -> Arc<dyn Queue> {
    let queue = connect(url).await.expect("connects");
    queue.declare(&[name()]).await.expect("declares");
    queue
}

/// As callers must: the whole batch again after an error, until it is confirmed.
async fn publish_until_confirmed(queue: &dyn Queue, batch: &[Outgoing]) -> u32 {
    let started = Instant::now();
    let mut attempts = 1;
    while let Err(e) = queue.publish(&name(), batch).await {
        assert!(matches!(e, QueueError::Unavailable(_)), "{e}");
        assert!(started.elapsed() < Duration::from_secs(60), "still {e}");
        tokio::time::sleep(Duration::from_millis(100)).await;
        attempts += 1;
    }
    attempts
}

async fn plain_channel(url: &str) -> (Connection, lapin::Channel) {
    let connection = Connection::connect(url, ConnectionProperties::default()).await.expect("connects");
    let channel = connection.create_channel().await.expect("a channel");
    (connection, channel)
}

async fn eventually<T>(what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = probe().await {
            return found;
        }
        assert!(started.elapsed() < Duration::from_secs(20), "{what} has not come");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn setup_message<T>(result: Result<T, QueueError>) -> String {
    match result {
        Err(QueueError::Setup(message) | QueueError::Refused(message)) => message.to_string(),
        Err(other) => panic!("expected a setup error, got {other:?}"),
        Ok(_) => panic!("expected a setup error"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p1_a_killed_broker_comes_back_and_nothing_confirmed_is_lost() {
    let broker = blocking(|| RabbitMq::start().expect("RabbitMQ starts")).await;
    let queue = declared(&broker.url("%2f")).await;
    let mut consumer = queue.consume(&name(), 50).await.expect("consumes");
    publish_until_confirmed(&*queue, &messages(0..300)).await;
    let mut seen: Vec<u32> = Vec::new();
    let mut held: Vec<Delivery> = Vec::new();
    while seen.len() < 100 {
        let batch = consumer.receive(20, Duration::from_secs(5)).await.expect("receives");
        seen.extend(batch.iter().map(number));
        if seen.len() < 100 {
            consumer.ack(batch).await.expect("acks");
        } else {
            held = batch;
        }
    }
    let broker = blocking(move || {
        let mut broker = broker;
        broker.settle().expect("settles");
        broker.kill();
        broker
    })
    .await;
    // what the client had read before the kill is still handed out
    let away = eventually("the loss", async || match consumer.receive(20, Duration::from_millis(500)).await {
        Ok(batch) => {
            seen.extend(batch.iter().map(number));
            held.extend(batch);
            None
        }
        Err(e) => Some(e),
    })
    .await;
    assert!(matches!(away, QueueError::Unavailable(_)), "{away:?}");
    assert!(matches!(queue.publish(&name(), &messages(300..301)).await, Err(QueueError::Unavailable(_))));
    let held_count = held.len();
    assert!(held_count > 0 && consumer.ack(held).await.is_err(), "deliveries of a lost channel cannot be acked");

    let broker = blocking(move || {
        let mut broker = broker;
        broker.restart().expect("comes back");
        broker
    })
    .await;
    publish_until_confirmed(&*queue, &messages(300..400)).await;
    let started = Instant::now();
    let mut redelivered = 0;
    let mut seen = seen.into_iter().collect::<BTreeSet<u32>>();
    let everything = (0..400).collect::<BTreeSet<_>>();
    // what was held comes again, and nothing is missing
    while redelivered < held_count || seen != everything {
        match consumer.receive(50, Duration::from_millis(500)).await {
            Ok(batch) => {
                redelivered += batch.iter().filter(|delivery| delivery.redelivered).count();
                seen.extend(batch.iter().map(number));
                consumer.ack(batch).await.expect("acks");
            }
            Err(e) => assert!(matches!(e, QueueError::Unavailable(_)), "{e}"),
        }
        let progress = format!("{redelivered} of {held_count} again, {} of 400 seen", seen.len());
        assert!(started.elapsed() < Duration::from_secs(60), "{progress}");
    }
    assert_eq!(queue.depth(&name()).await.expect("depth").consumers, 1, "the same consumer, once");
    drop(broker);
}

/// RabbitMQ 3.10 that is killed soon after a quorum queue was declared can bring it back without a leader.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p2_queues_that_come_back_without_a_leader_are_made_anew() {
    let broker = blocking(|| RabbitMq::start().expect("RabbitMQ starts")).await;
    let queue = connect(&broker.url("%2f")).await.expect("connects");
    let names: Vec<QueueName> = Role::ALL.map(|role| QueueName::new("default", role)).to_vec();
    queue.declare(&names).await.expect("declares");
    let mut consumers = Vec::new();
    for name in &names {
        consumers.push(queue.consume(name, 10).await.expect("consumes"));
        queue.publish(name, &messages(0..5)).await.expect("publishes");
    }
    let broker = blocking(move || {
        let mut broker = broker;
        broker.kill();
        broker.restart().expect("comes back");
        broker
    })
    .await;
    for (name, consumer) in names.iter().zip(&mut consumers) {
        let started = Instant::now();
        while let Err(e) = queue.publish(name, &messages(5..8)).await {
            assert!(matches!(e, QueueError::Unavailable(_)), "{e}");
            assert!(started.elapsed() < Duration::from_secs(90), "still {e}");
        }
        let mut missing = BTreeSet::from([5, 6, 7]);
        eventually("what was confirmed", async || {
            let batch = consumer.receive(10, Duration::from_millis(500)).await.unwrap_or_default();
            for delivery in &batch {
                missing.remove(&number(delivery));
            }
            let _ = consumer.ack(batch).await;
            missing.is_empty().then_some(())
        })
        .await;
    }
    drop(broker);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p2_deleted_queues_are_setup_errors_until_they_are_declared_again() {
    let (_broker, url) = shared_vhost().await;
    let queue = declared(&url).await;
    let mut consumer = queue.consume(&name(), 10).await.expect("consumes");
    let (_connection, channel) = plain_channel(&url).await;
    channel.queue_delete(name().wire_name().as_str().into(), QueueDeleteOptions::default()).await.expect("deletes");
    let message = setup_message(consumer.receive(1, Duration::from_secs(5)).await);
    assert!(message.contains("is not declared") && message.contains("bench-coord migrate"), "{message}");
    let message = setup_message(queue.publish(&name(), &messages(0..3)).await);
    assert!(message.contains("bench.t1.default.question is not declared"), "{message}");
    queue.declare(&[name()]).await.expect("declares again");
    queue.publish(&name(), &messages(0..3)).await.expect("publishes");
    let mut received =
        eventually("the consumer", async || consumer.receive(3, Duration::from_secs(1)).await.ok()).await;
    received.extend(receive_all(&mut *consumer, 3 - received.len()).await);
    assert_eq!(received.iter().map(number).collect::<Vec<_>>(), [0, 1, 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreadable_messages_go_to_the_dead_letters_and_stay_there() {
    let (_broker, url) = shared_vhost().await;
    let queue = declared(&url).await;
    let (_connection, channel) = plain_channel(&url).await;
    let publish = async |body: &[u8]| {
        let key = name().wire_name();
        let publishing = channel.basic_publish(
            "".into(),
            key.as_str().into(),
            BasicPublishOptions::default(),
            body,
            BasicProperties::default(),
        );
        publishing.await.expect("publishes").await.expect("publishes");
    };
    publish(b"not json").await;
    queue.publish(&name(), &messages(0..1)).await.expect("publishes");
    publish(&[0xff; 5000]).await;
    queue.publish(&name(), &messages(1..2)).await.expect("publishes");
    let mut consumer = queue.consume(&name(), 10).await.expect("consumes");
    let received = receive_all(&mut *consumer, 2).await;
    assert_eq!(received.iter().map(number).collect::<Vec<_>>(), [0, 1]);
    consumer.ack(received).await.expect("acks");
    assert!(consumer.receive(10, Duration::from_millis(200)).await.expect("receives").is_empty());
    let letters = eventually("both dead letters", async || {
        let letters = queue.take_dead_letters(100).await.expect("reads");
        (letters.unreadable == 2).then_some(letters)
    })
    .await;
    assert!(letters.tasks.is_empty());
    assert_eq!(queue.take_dead_letters(100).await.expect("reads").unreadable, 2, "they stay");

    // people see why, and settle them
    let mut found = queue.unreadable().await.expect("are looked at");
    let first_time = found.clone();
    // a consumer rejects what it got at once in any order
    found.sort_by_key(|message| message.body.len());
    let seen: Vec<_> = found.iter().map(|message| (message.body.len(), message.from.as_deref())).collect();
    let from = name().wire_name();
    assert_eq!(seen, [(8, Some(from.as_str())), (5000, Some(from.as_str()))]);
    assert!(found[0].why.contains("is not a task") && found[1].why.contains("5000 bytes"), "{found:?}");
    assert_eq!(queue.unreadable().await.expect("are looked at again"), first_time, "looking changes nothing");
    assert_eq!(queue.settle_unreadable(&["another".to_owned()], Fate::Drop).await.expect("answers"), 0);
    let first = [found[0].id.clone()];
    assert_eq!(queue.settle_unreadable(&first, Fate::Drop).await.expect("is dropped"), 1);
    let second = [found[1].id.clone()];
    assert_eq!(queue.settle_unreadable(&second, Fate::Requeue).await.expect("goes back"), 1);
    assert_eq!(queue.dead_letter_count().await.expect("is counted"), 0);
    // nothing has changed in it: a consumer sends it here again
    assert!(consumer.receive(10, Duration::from_millis(500)).await.expect("receives").is_empty());
    let again = eventually("the one that went back", async || {
        queue.take_dead_letters(100).await.expect("reads");
        queue.unreadable().await.expect("are looked at").pop()
    })
    .await;
    assert_eq!((again.body.len(), again.from.as_deref()), (5000, Some(from.as_str())));
    assert_ne!(again.id, found[1].id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p12_dead_letters_of_an_earlier_build_are_moved_and_its_queue_is_removed() {
    let (_broker, url) = shared_vhost().await;
    let queue = declared(&url).await;
    let (_connection, channel) = plain_channel(&url).await;
    let old = "bench.t1.dead";
    for _ in 0..2 {
        // as that build declares it, also while this one is running
        let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
        let mut arguments = FieldTable::default();
        arguments.insert("x-queue-type".into(), AMQPValue::LongString("classic".into()));
        channel.queue_declare(old.into(), durable, arguments).await.expect("declares");
        let bind = channel.queue_bind(old.into(), old.into(), "".into(), Default::default(), FieldTable::default());
        bind.await.expect("binds");
        let task = serde_json::to_vec(&messages(3..4)[0].message).expect("serialises");
        for body in [task.as_slice(), b"nonsense"] {
            let properties = BasicProperties::default();
            let publishing =
                channel.basic_publish("".into(), old.into(), BasicPublishOptions::default(), body, properties);
            publishing.await.expect("publishes").await.expect("publishes");
        }
        queue.declare(&[]).await.expect("declares");
        let letters = queue.take_dead_letters(100).await.expect("reads");
        assert_eq!(letters.tasks, [messages(3..4)[0].message.clone()]);
        let ids: Vec<String> = queue.unreadable().await.expect("reads").into_iter().map(|found| found.id).collect();
        assert_eq!((letters.unreadable, ids.len()), (1, 1));
        queue.settle_unreadable(&ids, Fate::Drop).await.expect("is dropped");
    }
    let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
    assert!(channel.queue_declare(old.into(), passive, FieldTable::default()).await.is_err(), "it is gone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreadable_messages_are_bounded_and_the_newest_stay() {
    let (_broker, url) = shared_vhost().await;
    let queue = declared(&url).await;
    let (_connection, channel) = plain_channel(&url).await;
    let mut confirms = Vec::new();
    for n in 0..10_005 {
        let body = format!("message {n}");
        let (options, properties) = (BasicPublishOptions::default(), BasicProperties::default());
        let publishing =
            channel.basic_publish("".into(), "bench.t1.unreadable".into(), options, body.as_bytes(), properties);
        confirms.push(publishing.await.expect("publishes"));
    }
    for confirm in confirms {
        confirm.await.expect("is confirmed");
    }
    eventually("the bound", async || (queue.dead_letter_count().await.expect("counts") == 10_000).then_some(())).await;
    let head = channel.basic_get("bench.t1.unreadable".into(), Default::default()).await.expect("is read");
    assert_eq!(head.expect("is there").delivery.data, b"message 5", "the oldest have gone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p1_messages_that_kill_workers_end_as_dead_letters() {
    let (_broker, url) = shared_vhost().await;
    let queue = declared(&url).await;
    queue.publish(&name(), &messages(5..6)).await.expect("publishes");
    for deliveries in 0..21 {
        let mut consumer = queue.consume(&name(), 1).await.expect("consumes");
        let batch = receive_all(&mut *consumer, 1).await;
        assert_eq!(batch[0].redelivered, deliveries > 0);
    }
    // the first one and 20 more: now it is taken away
    let letters = eventually("the dead letter", async || {
        let letters = queue.take_dead_letters(10).await.expect("reads");
        (!letters.tasks.is_empty()).then_some(letters)
    })
    .await;
    assert_eq!(letters.tasks, [messages(5..6)[0].message.clone()]);
    assert!(queue.take_dead_letters(10).await.expect("reads").tasks.is_empty(), "tasks are taken out");
}

/// A full queue is a nack that can be had without a cluster: a queue of the same name that refuses more than it holds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p2_nacked_messages_are_unavailable_and_the_next_publish_is_fresh() {
    let (_broker, url) = shared_vhost().await;
    let queue = connect(&url).await.expect("connects");
    let (_connection, channel) = plain_channel(&url).await;
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
    arguments.insert("x-max-length".into(), AMQPValue::LongLongInt(5));
    arguments.insert("x-overflow".into(), AMQPValue::LongString("reject-publish".into()));
    let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    channel.queue_declare(name().wire_name().as_str().into(), durable, arguments).await.expect("declares");
    let mut refused = None;
    for n in 0..50 {
        if let Err(e) = queue.publish(&name(), &messages(n * 10..n * 10 + 10)).await {
            refused = Some(e);
            break;
        }
    }
    match refused {
        Some(QueueError::Unavailable(message)) => assert!(message.contains("could not store"), "{message}"),
        other => panic!("expected a nack, got {other:?}"),
    }
    queue.purge(&name()).await.expect("purges");
    eventually("a confirmed publish", async || queue.publish(&name(), &messages(0..1)).await.ok()).await;
    let message = setup_message(queue.declare(&[name()]).await);
    assert!(message.contains("with other arguments"), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_urls_say_what_is_wrong_and_never_the_password() {
    let (broker, _) = shared_vhost().await;
    let port = broker.address().port();
    for (url, expected) in [
        (format!("amqp://guest:secret@127.0.0.1:{port}/%2f"), "check user and password"),
        (format!("amqp://guest:guest@127.0.0.1:{port}/nowhere"), "does not exist"),
        ("amqp://guest:secret@127.0.0.1:x/".to_owned(), "cannot read the queue URL"),
    ] {
        let message = setup_message(connect(&url).await);
        assert!(message.contains(expected) && !message.contains("secret"), "{message}");
    }
    let nobody = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port").local_addr().expect("an address");
    match connect(&format!("amqp://guest:secret@{nobody}/%2f")).await.err() {
        Some(QueueError::Unavailable(message)) => assert!(!message.contains("secret"), "{message}"),
        other => panic!("expected unavailable, got {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p12_workers_need_no_configure_permission() {
    let (broker, url) = shared_vhost().await;
    let admin = declared(&url).await;
    let vhost = url.rsplit('/').next().expect("a virtual host").to_owned();
    let user = format!("worker-{vhost}");
    let worker_url = url.replace("guest:guest", &format!("{user}:pw"));
    let control = Arc::clone(&broker);
    blocking(move || {
        control.control(&["add_user", &user, "pw"]).expect("a user");
        control
            .control(&["set_permissions", "-p", &vhost, &user, "^$", "^(amq\\.default|bench\\..*)$", "^bench\\..*$"])
            .expect("permissions");
    })
    .await;
    let worker = connect(&worker_url).await.expect("connects");
    let mut consumer = worker.consume(&name(), 5).await.expect("consumes");
    admin.publish(&name(), &messages(0..2)).await.expect("publishes");
    let received = receive_all(&mut *consumer, 2).await;
    consumer.ack(received).await.expect("acks");
    worker.publish(&name(), &messages(2..3)).await.expect("publishes");
    assert_eq!(worker.depth(&name()).await.expect("depth").consumers, 1);
    let message = setup_message(worker.declare(&[QueueName::new("new", Role::Judge)]).await);
    assert!(message.contains("configure permission"), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_connections_and_black_holes_are_survived() {
    let (broker, url) = shared_vhost().await;
    let proxy = Proxy::start(broker.address()).await.expect("a proxy");
    let port = |port: u16| format!(":{port}/");
    let through = url.replace(&port(broker.address().port()), &port(proxy.address().port()));
    let direct = declared(&url).await;
    let queue = connect(&format!("{through}?heartbeat=1")).await.expect("connects");
    let mut consumer = queue.consume(&name(), 10).await.expect("consumes");
    for round in 0..3 {
        let (theirs, ours) = (round * 2, round * 2 + 1);
        direct.publish(&name(), &messages(theirs..theirs + 1)).await.expect("publishes");
        publish_until_confirmed(&*queue, &messages(ours..ours + 1)).await;
        let mut missing = BTreeSet::from([theirs, ours]);
        eventually("both messages", async || {
            // what was acked just before a cut may come again
            if let Ok(batch) = consumer.receive(10, Duration::from_secs(1)).await {
                batch.iter().for_each(|delivery| {
                    missing.remove(&number(delivery));
                });
                let _ = consumer.ack(batch).await;
            }
            missing.is_empty().then_some(())
        })
        .await;
        match round {
            0 => proxy.cut(),
            1 => {
                proxy.set(Faults::black_hole());
                let started = Instant::now();
                eventually("the loss", async || consumer.receive(1, Duration::from_millis(200)).await.err()).await;
                assert!(started.elapsed() < Duration::from_secs(10), "heartbeats notice a silent peer");
                proxy.cut();
                proxy.heal();
            }
            _ => {}
        }
    }
    assert!(proxy.accepted() >= 4, "both connections were opened again");
}

/// Speed is printed, not asserted: the machine may be busy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crude_speed() {
    let (_broker, url) = shared_vhost().await;
    let queue = declared(&url).await;
    let batch = messages(0..1000);
    let started = Instant::now();
    for _ in 0..10 {
        queue.publish(&name(), &batch).await.expect("publishes");
    }
    let published = started.elapsed();
    let mut consumer = queue.consume(&name(), 200).await.expect("consumes");
    let started = Instant::now();
    let mut count = 0;
    while count < 10_000 {
        let received = consumer.receive(100, Duration::from_secs(5)).await.expect("receives");
        assert!(!received.is_empty(), "only {count} have come");
        count += received.len();
        consumer.ack(received).await.expect("acks");
    }
    let rate = |elapsed: Duration| 10_000.0 / elapsed.as_secs_f64();
    eprintln!(
        "amqp: {:.0} messages/s published, {:.0} consumed (prefetch 200)",
        rate(published),
        rate(started.elapsed())
    );
}

/// A certificate authority, and files that it has signed.
struct Certificates {
    folder: tempfile::TempDir,
}

impl Certificates {
    fn new() -> Self {
        use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
        let folder = RabbitMq::folder_for_files().expect("a folder");
        let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).expect("is written");
        let mut authority = CertificateParams::new(Vec::new()).expect("parameters");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        authority.distinguished_name.push(DnType::CommonName, "authority of the test");
        let key = KeyPair::generate().expect("a key");
        write("ca.pem", authority.self_signed(&key).expect("is signed").pem());
        let issuer = Issuer::new(authority, key);
        for (name, host) in [("server", "localhost"), ("client", "worker")] {
            let key = KeyPair::generate().expect("a key");
            let mut certificate = CertificateParams::new(vec![host.to_owned()]).expect("parameters");
            certificate.distinguished_name.push(DnType::CommonName, host);
            write(&format!("{name}.pem"), certificate.signed_by(&key, &issuer).expect("is signed").pem());
            write(&format!("{name}.key"), key.serialize_pem());
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn path_for_node(&self, name: &str) -> String {
        RabbitMq::path_for_node(&self.folder.path().join(name)).display().to_string()
    }
}

#[tokio::test]
async fn amqps_checks_the_broker_and_shows_a_client_certificate() {
    let certificates = Certificates::new();
    let [port] = bench_testkit::ports::reserve().expect("a port");
    let configuration = format!(
        "listeners.ssl.1 = 127.0.0.1:{port}\nssl_options.cacertfile = {}\nssl_options.certfile = {}\n\
         ssl_options.keyfile = {}\nssl_options.verify = verify_peer\nssl_options.fail_if_no_peer_cert = true\n",
        certificates.path_for_node("ca.pem"),
        certificates.path_for_node("server.pem"),
        certificates.path_for_node("server.key")
    );
    let broker = blocking(move || RabbitMq::start_with(&configuration).expect("RabbitMQ starts")).await;
    // the node answers on its plain port a moment before it opens this one
    for _ in 0..100 {
        if tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let url = |query: String| format!("amqps://guest:guest@localhost:{port}/%2f?{query}");
    let authority = format!("cacertfile={}", certificates.path("ca.pem"));
    let client = format!("certfile={}&keyfile={}", certificates.path("client.pem"), certificates.path("client.key"));

    let queue = connect(&url(format!("{authority}&{client}"))).await.expect("connects");
    queue.declare(&[name()]).await.expect("is declared");
    queue.publish(&name(), &messages(0..3)).await.expect("is published");
    assert_eq!(queue.depth(&name()).await.expect("is counted").ready, 3);
    queue.close().await;

    let untrusted = setup_message(connect(&url(client)).await);
    assert!(untrusted.contains("?cacertfile=") && !untrusted.contains("guest:guest"), "{untrusted}");
    let nobody = connect(&url(authority)).await.err().expect("no client certificate").to_string();
    assert!(!nobody.contains("guest:guest"), "{nobody}");
    drop(broker);
}

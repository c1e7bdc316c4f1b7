//! Bodies are bounded in bytes and in time, and a store that cannot store is never a 2xx.

use hookproof_core::time::Millis;
use hookproof_receiver::config::ReceiverConfig;
use hookproof_receiver::store::{InboxStore as _, Totals};
use hookproof_runtime::database::StoreError;
use hookproof_runtime::host::Host as _;
use hookproof_runtime::tokio_host::TokioHost;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::given::{BODY, Disk, Post, config, ms, start, text};
use crate::worker::Moody;

#[tokio::test]
async fn a_body_at_the_limit_is_accepted_and_one_byte_more_is_not() {
    let config = ReceiverConfig { body_bytes_max: 1000, ..config() };
    let disk = Disk::new();
    let receiver = start(TokioHost, disk.open().await, config).await;
    for (bytes, status) in [(1000, 202), (1001, 413), (100_000, 413)] {
        let post = Post::new("shop", &format!("msg_{bytes}"), &vec![b'x'; bytes]);
        let answer = receiver.send(post.request()).await;
        assert_eq!(answer.status, status, "{bytes} bytes");
        assert_eq!(status == 413, text(&answer).contains("at most 1000 bytes"), "{bytes} bytes");
    }
    assert_eq!(receiver.until(|totals| totals.applied == 1).await.events, 1);
    receiver.stop().await;
}

#[tokio::test]
async fn chunks_without_an_end_are_cut_off() {
    let config = ReceiverConfig { body_bytes_max: 1000, ..config() };
    let disk = Disk::new();
    let receiver = start(TokioHost, disk.open().await, config).await;
    let mut stream = TokioHost.connect(receiver.address).await.unwrap();
    let head = "POST /hooks/shop HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..11 {
        let chunk = format!("64\r\n{}\r\n", "x".repeat(100));
        stream.write_all(chunk.as_bytes()).await.unwrap();
        TokioHost.sleep(ms(5)).await;
    }
    assert!(rest(&mut stream).await.starts_with("HTTP/1.1 413 "));
    receiver.stop().await;
}

#[tokio::test]
async fn a_body_that_does_not_arrive_in_time_is_given_up() {
    let config = ReceiverConfig { body_timeout: ms(100), ..config() };
    let disk = Disk::new();
    let receiver = start(TokioHost, disk.open().await, config).await;
    let mut stream = TokioHost.connect(receiver.address).await.unwrap();
    let head = "POST /hooks/shop HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nhalf";
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = rest(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("within 100ms"), "{answer}");
    receiver.stop().await;
}

#[tokio::test]
async fn half_a_signed_body_is_no_event() {
    let disk = Disk::new();
    let receiver = start(TokioHost, disk.open().await, config()).await;
    let post = Post::new("shop", "msg_1", BODY);
    let mut head = format!("POST {} HTTP/1.1\r\nhost: a\r\n", post.path);
    for (name, value) in &post.headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("content-length: {}\r\n\r\n", post.body.len());
    let mut stream = TokioHost.connect(receiver.address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&post.body[..20]).await.unwrap();
    drop(stream);

    assert_eq!(receiver.deliver("shop", "msg_2").await.status, 202);
    receiver.until(|totals| totals.applied == 1).await;
    assert_eq!(receiver.effects("msg_1").await, 0);
    receiver.stop().await;
}

#[tokio::test]
async fn what_the_store_refuses_is_a_503_until_it_takes_it() {
    let disk = Disk::new();
    let store = disk.open().await;
    let sql = |sql: &'static str| {
        store.database().write(move |c| c.execute_batch(sql).map_err(StoreError::from))
    };
    let receiver = start(TokioHost, store.clone(), config()).await;
    sql("CREATE TRIGGER full BEFORE INSERT ON inbox BEGIN SELECT RAISE(FAIL, 'full'); END")
        .await
        .unwrap();
    let answer = receiver.deliver("shop", "msg_1").await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.headers["retry-after"], "1");
    assert!(!text(&answer).contains("full"), "the reason is for the log: {}", text(&answer));
    assert_eq!(receiver.store.totals().await.unwrap(), Totals::default());

    sql("DROP TRIGGER full").await.unwrap();
    assert_eq!(receiver.deliver("shop", "msg_1").await.status, 202);
    receiver.until(|totals| totals.applied == 1).await;
    receiver.stop().await;
}

#[tokio::test]
async fn when_the_store_has_ended_every_answer_that_needs_it_is_a_503() {
    let disk = Disk::new();
    let store = Moody::new(disk.open().await);
    let receiver = start(TokioHost, store.clone(), config()).await;
    store.refuse(true);
    let answer = receiver.deliver("shop", "msg_1").await;
    assert_eq!((answer.status, &answer.headers["retry-after"]), (503, &"1".parse().unwrap()));
    assert_eq!(receiver.get("/effects").await.status, 503);
    assert_eq!(receiver.get("/effects/msg_1").await.status, 503);
    assert_eq!(receiver.get("/health").await.status, 200);
    receiver.stop().await;
}

async fn rest(stream: &mut (impl tokio::io::AsyncRead + Unpin + Send)) -> String {
    let mut answer = Vec::new();
    let read = TokioHost.within(Millis::from_secs(10), stream.read_to_end(&mut answer)).await;
    read.expect("the connection stayed open").expect("the answer arrives whole");
    String::from_utf8(answer).expect("UTF-8")
}

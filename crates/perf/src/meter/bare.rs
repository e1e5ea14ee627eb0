//! A proxy of the libraries of the meter that passes requests on, and replies back, as they come: what the way through any such proxy
//! takes.

use std::{io::Read, sync::Arc};

use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use tokio::net::{TcpListener, TcpStream};

/// Where it passes requests on to.
struct Provider {
    client: reqwest::Client,
    base_url: String,
}

impl Provider {
    async fn pass_on(&self, request: Request<Incoming>) -> reqwest::Result<Response<reqwest::Body>> {
        let url = format!("{}{}", self.base_url, request.uri().path());
        let headers = [(AUTHORIZATION, "Bearer sk-none"), (CONTENT_TYPE, "application/json")];
        let body = reqwest::Body::wrap(request.into_body());
        let asked = headers.into_iter().fold(self.client.post(url), |asked, (name, value)| asked.header(name, value));
        asked.body(body).send().await.map(Into::into)
    }
}

/// That proxy before a provider, in this process. Ends with its input.
pub(crate) fn serve(provider: &str) -> anyhow::Result<()> {
    // as many as the meter has
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let client = reqwest::Client::builder().tcp_nodelay(true).no_proxy().http1_only().build()?;
        let provider = Arc::new(Provider { client, base_url: provider.to_owned() });
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}", listener.local_addr()?);
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(connection(stream, Arc::clone(&provider)));
            }
        });
        let _ = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await;
        serving.abort();
        Ok(())
    })
}

async fn connection(stream: TcpStream, provider: Arc<Provider>) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let provider = Arc::clone(&provider);
        async move { provider.pass_on(request).await }
    });
    // whoever asks sees that a reply is missing
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

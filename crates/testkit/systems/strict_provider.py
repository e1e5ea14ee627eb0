"""OpenAI chat completions on servers that are strict about HTTP: aiohttp, uvicorn with h11, hypercorn (also with TLS).

python strict_provider.py aiohttp|uvicorn|hypercorn PORT [CERTIFICATE KEY]
"""

import asyncio
import json
import sys


def value_of(schema):
    """The simplest value that follows a schema."""
    kind = schema.get("type")
    if "enum" in schema:
        return schema["enum"][0]
    if kind == "object":
        return {name: value_of(part) for name, part in schema.get("properties", {}).items()}
    return {"boolean": True, "integer": 1, "number": 1, "array": []}.get(kind, "a lake")


def completion(body):
    request = json.loads(body)
    form = request.get("response_format", {})
    text = json.dumps(value_of(form["json_schema"]["schema"])) if form.get("type") == "json_schema" else "a lake"
    message = {"role": "assistant", "content": text}
    return {
        "id": "c",
        "object": "chat.completion",
        "model": request["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": len(body) // 4, "completion_tokens": 5, "total_tokens": len(body) // 4 + 5},
    }


def doubled(headers):
    """Names of headers that came more than once."""
    names = [name for name, _ in headers]
    return sorted({name.decode() for name in names if names.count(name) > 1})


async def app(scope, receive, send):
    """The same for servers that speak ASGI; they pass on what aiohttp refuses by itself."""
    if scope["type"] == "lifespan":
        while (message := await receive())["type"] != "lifespan.shutdown":
            await send({"type": message["type"] + ".complete"})
        return await send({"type": "lifespan.shutdown.complete"})
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    twice = doubled(scope["headers"])
    if twice:
        status, reply = 400, {"error": {"message": f"Duplicate headers: {', '.join(twice)}"}}
    elif scope["path"].endswith("/chat/completions"):
        status, reply = 200, completion(body)
    else:
        status, reply = 404, {"error": {"message": f"no such path over HTTP/{scope['http_version']}"}}
    text = json.dumps(reply).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(text)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text})


def serve_aiohttp(port):
    from aiohttp import web

    async def chat(request):
        return web.json_response(completion(await request.read()))

    application = web.Application(client_max_size=1 << 26)
    application.router.add_post("/v1/chat/completions", chat)
    web.run_app(application, host="127.0.0.1", port=port, print=None, access_log=None)


def serve_uvicorn(port):
    import uvicorn

    uvicorn.run(app, host="127.0.0.1", port=port, http="h11", log_level="warning")


def serve_hypercorn(port, certificate=None, key=None):
    from hypercorn.asyncio import serve
    from hypercorn.config import Config

    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    config.certfile, config.keyfile = certificate, key
    config.alpn_protocols = ["h2", "http/1.1"]
    asyncio.run(serve(app, config))


if __name__ == "__main__":
    globals()[f"serve_{sys.argv[1]}"](int(sys.argv[2]), *sys.argv[3:])

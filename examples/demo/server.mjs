/** The server of both programs of `banana-serve demo`: `POST /` calls the model, `GET /health` answers. */
import { createServer } from 'node:http';

const COSTED_CALLS = 2000;

/** `workers` returns the ids of further processes. The process that has started this one gets the port. */
export function listen(model, workers = () => []) {
  const routes = {
    '/': async (request) => model(JSON.parse(await text(request))),
    '/health': () => 'ok',
    '/pids': () => [process.pid, ...workers()],
    '/cost': () => medianUs(model),
  };
  const server = createServer(async (request, response) => {
    try {
      response.end(JSON.stringify(await routes[request.url](request)));
    } catch ({ code, message }) {
      response.writeHead(500).end(JSON.stringify({ code, message }));
    }
  });
  server.listen(0, '127.0.0.1', () => process.send(server.address().port));
  process.on('disconnect', () => process.exit());
}

async function text(request) {
  let body = '';
  for await (const chunk of request) body += chunk;
  return body;
}

/** The median time of a call with one picture, one after the other. */
async function medianUs(model) {
  const times = [];
  for (let i = 0; i < COSTED_CALLS; i += 1) {
    const startedAtMs = performance.now();
    await model({ pictures: 1 });
    times.push(performance.now() - startedAtMs);
  }
  return 1000 * times.sort((a, b) => a - b)[COSTED_CALLS / 2];
}

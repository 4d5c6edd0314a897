/**
 * The same app without this project: its `inference` called inside a web server's own process.
 * `node baseline-main.js koa|koa-bytes|fastify|bare APP` prints its URL on stderr.
 *
 * "koa": Koa and its router, body collected, `JSON.parse`, an object as the body. "koa-bytes": bytes in, bytes out.
 * "fastify": its plain POST route. "bare": node:http that sends back the bytes it got, the floor under all of them;
 * it never calls the app.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { availableParallelism } from 'node:os';
import { pathToFileURL } from 'node:url';

type Inference = (input: unknown, ctx: object) => unknown;

interface App {
  init?(ctx: object): unknown;
  inference: Inference;
}

const MAX_BODY_BYTES = 64 * 2 ** 20;
const CONTEXT = { worker: { index: 0, gpu: null, threads: availableParallelism() } };

const [, , kind = '', appPath = ''] = process.argv;
const app = await importApp(appPath);
await app.init?.(CONTEXT);
const server = await start(kind, app.inference);
const { port } = server.address() as AddressInfo;
process.stderr.write(`http://127.0.0.1:${port}\n`);

async function importApp(path: string): Promise<App> {
  if (path.endsWith('.ts')) (await import('tsx/esm/api')).register();
  return (await import(pathToFileURL(path).href)) as App;
}

async function start(kind: string, inference: Inference): Promise<Server> {
  switch (kind) {
    case 'koa':
      return startKoa((body) => inference(JSON.parse(body.toString('utf8')), CONTEXT));
    case 'koa-bytes':
      return startKoa((body) => inference(body, CONTEXT));
    case 'fastify':
      return startFastify(inference);
    case 'bare':
      return startBare();
    default:
      throw new RangeError(`no baseline is called "${kind}": koa, koa-bytes, fastify or bare`);
  }
}

async function startKoa(answer: (body: Buffer) => unknown): Promise<Server> {
  const [{ default: Koa }, { default: Router }] = await Promise.all([import('koa'), import('@koa/router')]);
  const router = new Router();
  router.post('/', async (ctx) => {
    ctx.body = await answer(await readBody(ctx.req));
  });
  const server = new Koa().use(router.routes()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

async function startFastify(inference: Inference): Promise<Server> {
  const { default: fastify } = await import('fastify');
  const app = fastify({ bodyLimit: MAX_BODY_BYTES });
  app.post('/', (request) => Promise.resolve(inference(request.body, CONTEXT)));
  await app.listen({ port: 0, host: '127.0.0.1' });
  return app.server;
}

async function startBare(): Promise<Server> {
  const server = createServer((request, response) => {
    void readBody(request).then((body) => {
      response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': body.length });
      response.end(body);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

/** The body is read by events: `for await` over a request costs the baseline several microseconds more. */
function readBody(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)));
    request.on('error', reject);
  });
}

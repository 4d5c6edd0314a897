/**
 * The types of a Potassium app, as an author's editor checks them. Compiled and not run: `@ts-expect-error` marks each line that must be refused, and
 * one that is not refused any more is an error itself.
 */
import { Potassium, Request, Response, type Background, type Handler } from '../../potassium.js';

interface Prompt {
  readonly prompt: string;
}
interface Guess {
  readonly word: string;
}

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(..._proof: Equal<A, B> extends true ? [] : [never]): void {}

// The context flows from init to every function, without a cast.

const app = new Potassium('types').init(async (_workerNum) => {
  same<typeof _workerNum, number>();
  return Promise.resolve({ model: (prompt: string): string => prompt, calls: 0 });
});
same<typeof app, Potassium<{ model: (prompt: string) => string; calls: number }>>();

app.handler('/context', (context) => {
  same<typeof context.calls, number>();
  context.calls += 1;
  // @ts-expect-error the context has no such member
  void context.tokens;
  return new Response({ json: context.model('a') });
});
app.background('/context-background', (context) => {
  // @ts-expect-error a number is no text
  context.model(context.calls);
});
app.handler('/context-later')((context) => {
  // @ts-expect-error the context has no such member
  void context.tokens;
  return new Response();
});
app.background('/context-background-later')((context) => {
  // @ts-expect-error the context has no such member
  void context.tokens;
});
same<ReturnType<typeof app.getCache>['calls'], number>();
app.setCache({ model: (prompt) => prompt, calls: 0 });
// @ts-expect-error a part of the context is missing
app.setContext({ calls: 0 });

// A batch handler takes requests and gives as many answers.

app.handler('/batch', { batch: true }, (context, requests) => {
  same<typeof context.calls, number>();
  return requests.map(({ json }) => new Response({ json: context.model(String(json)) }));
});
app.handler<Prompt, Guess>('/batch-types', { batch: true, raw: true }, async (_context, requests) => {
  same<(typeof requests)[number]['json'], Prompt>();
  return Promise.resolve(
    requests.map(({ json }) =>
      json.prompt === '' ? new Error('empty') : new Response({ json: { word: 'a' } }),
    ),
  );
});
app.handler('/batch-later', { batch: true })((_context, requests) => [
  Promise.resolve(new Response({ json: requests.length })),
]);
// @ts-expect-error one Response is no list of them
app.handler('/batch-one', { batch: true }, () => new Response());
// @ts-expect-error each entry answers a call
app.handler('/batch-values', { batch: true }, () => [1, 2]);
// @ts-expect-error a guess has a word
app.handler<Prompt, Guess>('/batch-guess', { batch: true }, () => [new Response({ json: { wort: 'a' } })]);
// @ts-expect-error only a handler takes batches
app.background('/batch-background', () => {}, { batch: true });

// init returns an object, or nothing.

new Potassium('x').init(() => ({}));
new Potassium<{ a: number }>('x').init(() => {}).handler('/', (context) => new Response({ json: context.a }));
// @ts-expect-error a number is no context
new Potassium('x').init(() => 5);
// @ts-expect-error nor is a text that comes later
new Potassium('x').init(() => Promise.resolve('text'));
// @ts-expect-error nor null
new Potassium('x').init(() => null);
// @ts-expect-error an init takes one argument, a number
new Potassium('x').init((workerNum: string) => ({ workerNum }));

// A handler's request and response have types, and it is held to them.

app.handler<Prompt, Guess>('/typed', (context, request) => {
  same<typeof request.json, Prompt>();
  // @ts-expect-error the request has no such member
  void request.json.text;
  return new Response({ json: { word: context.model(request.json.prompt) } });
});
// @ts-expect-error the answer's word is a text
app.handler<Prompt, Guess>('/wrong-answer', () => new Response({ json: { word: 5 } }));
app.handler<Prompt, Guess>('/late-wrong-answer', async () => {
  await Promise.resolve();
  // @ts-expect-error the answer has another member
  return new Response<Guess>({ json: { words: 'a' } });
});
app.background<Prompt>('/typed-background', (_context, request) => request.json.prompt);
app.handler<Prompt>((_cache, jsonIn) => ({ word: jsonIn.prompt }));
// @ts-expect-error what comes in has no such member
app.handler<Prompt>((_cache, jsonIn) => jsonIn.text);

// A handler returns a Response.

// @ts-expect-error JSON is no Response
app.handler('/returns-json', () => ({ word: 'a' }));
// @ts-expect-error nor is nothing
app.handler('/returns-nothing', () => {});
// @ts-expect-error nor is the Response of the web
app.handler('/returns-web', () => new globalThis.Response('a'));
// @ts-expect-error later as well
app.handler('/returns-json-later')(() => Promise.resolve({ word: 'a' }));
// @ts-expect-error a route is a text
app.handler(5, () => new Response());

// What is there is written once.

new Response({ status: 201, headers: { 'X-One': '1', 'X-Two': ['2', '3'] }, body: 'text' });
// @ts-expect-error a status is a number
new Response({ status: '200' });
// @ts-expect-error a body is text, bytes or an iterable of them
new Response({ body: 5 });
// @ts-expect-error there is no such option
app.handler('/raw', () => new Response(), { rav: true });
app.handler('/form', () => new Response(), { forms: true, text: true });
// @ts-expect-error a wish is yes or no
app.handler('/form', () => new Response(), { forms: 'yes' });
// @ts-expect-error a handler's webhook is that of the app
app.handler('/hook', () => new Response(), { resultWebhook: 'http://x.test/' });
app.background('/hook', () => {}, { resultWebhook: 'http://x.test/' });

function useRequest(request: Request<Prompt>): void {
  same<typeof request.json, Prompt>();
  same<typeof request.id, string>();
  same<typeof request.body, Uint8Array>();
  const _header = request.headers.get('x');
  same<typeof _header, string | undefined>();
  const [_text, _number] = [request.headers.require('x'), request.headers.get('x', 5)];
  same<typeof _text, string>();
  same<typeof _number, string | number>();
}

// Functions may be written apart.

const apart: Handler<{ calls: number }, Prompt, Guess> = (context, request) =>
  new Response({ json: { word: `${request.json.prompt} ${context.calls}` } });
app.handler('/apart', apart);
const elsewhere: Background<{ gpus: number }> = () => {};
// @ts-expect-error it needs another context
app.background('/elsewhere', elsewhere);

export { useRequest };

// A WebSocket route knows the context and its connection.

app.websocket('/chat', async (context, request) => {
  context.calls += 1;
  const _message = await request.ws.receive();
  same<typeof _message, string | Uint8Array | null>();
  for await (const _next of request.ws) same<typeof _next, string | Uint8Array>();
  await request.ws.send('text');
  await request.ws.close(4000, 'why');
  // @ts-expect-error an object is no message
  await request.ws.send({ a: 1 });
  // @ts-expect-error the context has no such member
  void context.tokens;
});
app.websocket('/chat-later')((context, { ws }) => ws.send(context.model('a')));
// @ts-expect-error a handler's request has no connection
app.handler('/no-chat', (_context, request) => new Response({ json: String(request.ws) }));

/** Banana's own npm clients against our server: what they were published as, each in a child process. */
import { fork } from 'node:child_process';
import type { Ending } from './cues.js';
import { ROOT, eventually, type Server } from './server.js';

/** The error of a client's method; majors up to 4 throw strings. */
export class Thrown extends Error {
  /** `string`, or the error's name. */
  readonly kind: string;

  constructor({ kind, text }: { kind: string; text: string }) {
    super(text);
    this.kind = kind;
  }
}

export interface PublishedClient {
  /** Calls a method; rejects with {@link Thrown}. */
  ask<T = unknown>(method: string, ...args: unknown[]): Promise<T>;
  /** The output of the client. */
  readonly printed: () => string;
  untilPrinted(text: string | RegExp): Promise<void>;
}

interface News {
  readonly id: number;
  readonly value?: unknown;
  readonly thrown?: { readonly kind: string; readonly text: string };
}

/** Resolves once the client is loaded. `major`: of the package, as aliased in package.json. */
export async function startClient(
  t: Ending,
  major: 3 | 4 | 6,
  server: Pick<Server, 'url'>,
  apiKey = 'any key',
): Promise<PublishedClient> {
  const child = fork(`${ROOT}test/fixtures/clients/published-client.mjs`, [`banana-dev-${major}`, apiKey], {
    env: { ...process.env, BANANA_URL: `${server.url}/` },
    silent: true,
  });
  t.after(() => child.kill());
  let printed = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => (printed += text));
  const waiting = new Map<number, (news: News) => void>();
  child.on('message', (news: News) => waiting.get(news.id)?.(news));
  child.once('exit', (code) => {
    const thrown = { kind: 'exit', text: `the client ended with ${code}:\n${printed}` };
    for (const [id, tell] of waiting) tell({ id, thrown });
  });
  const newsOf = (id: number): Promise<unknown> =>
    new Promise((resolve, reject) => {
      waiting.set(id, ({ value, thrown }) => {
        waiting.delete(id);
        if (thrown === undefined) resolve(value);
        else reject(new Thrown(thrown));
      });
    });
  await newsOf(0);
  let asked = 0;
  return {
    ask: <T>(method: string, ...args: unknown[]) => {
      asked += 1;
      const answer = newsOf(asked) as Promise<T>;
      child.send({ id: asked, method, args });
      return answer;
    },
    printed: () => printed,
    untilPrinted: (text) =>
      eventually(
        () => (typeof text === 'string' ? printed.includes(text) : text.test(printed)),
        60_000,
        () => `waiting for ${String(text)} in:\n${printed}`,
      ),
  };
}

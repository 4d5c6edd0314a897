/** Models that are managed over HTTP: of any server, and of one of the fixture apps as a model store, in this process. */
import { basename, dirname } from 'node:path';
import type { TestContext } from 'node:test';
import { serve } from '../../supervisor/serve.js';
import type { ServeOptions } from '../../supervisor/plan/given-options.js';
import type { ServerHandle } from '../../supervisor/server/server-handle.js';
import { makeCues, type Cues } from './cues.js';
import type { Runtime } from './runtimes.js';
import { ROOT, call, type Answer } from './server.js';

export interface Described {
  readonly modelName: string;
  readonly modelVersion: string;
  readonly minWorkers: number;
  readonly maxWorkers: number;
  readonly status: string;
  readonly workers: readonly {
    readonly id: string;
    readonly status: string;
    readonly startTime?: string;
    readonly memoryUsage: number;
    readonly gpu: boolean;
    readonly pid?: number;
    readonly restarts: number;
    readonly lastError?: string;
  }[];
}

/** Asks a server by its two listeners. */
export class Management {
  readonly url: string;
  readonly managementUrl: string;

  constructor(url: string, managementUrl: string) {
    this.url = url;
    this.managementUrl = managementUrl;
  }

  /** `asked`: method and path, such as `GET /models`. */
  manage(asked: string, init: RequestInit = {}): Promise<Answer> {
    const [method = '', path = ''] = asked.split(' ');
    const headers = (init.headers ?? {}) as Record<string, string>;
    return call(`${this.managementUrl}${path}`, null, headers, { ...init, method });
  }

  /** Status and text of a reply. */
  async said(asked: string): Promise<string> {
    const reply = await this.manage(asked);
    const { status, message } = reply.json<{ status?: string; message?: string }>();
    return `${reply.status} ${status ?? message}`;
  }

  async describe(model: string): Promise<Described> {
    return (await this.manage(`GET /models/${model}`)).json();
  }

  async pids(model: string): Promise<number[]> {
    return (await this.describe(model)).workers.flatMap(({ pid }) => pid ?? []);
  }

  infer(model: string, input: unknown = {}): Promise<Answer> {
    return call(`${this.url}/predictions/${model}`, JSON.stringify(input));
  }

  /** The reply to a call that is refused, such as `503 ServiceUnavailableException`. */
  async refusal(model: string): Promise<string> {
    const reply = await this.infer(model);
    return `${reply.status} ${reply.json<{ type?: string }>().type}`;
  }
}

export class ManagedServer extends Management {
  readonly handle: ServerHandle;

  constructor(handle: ServerHandle) {
    super(handle.url, handle.managementUrl as string);
    this.handle = handle;
  }
}

/** Killed when the test ends. */
export async function startManaged(t: TestContext, options: ServeOptions = {}): Promise<ManagedServer> {
  const quiet = { host: '127.0.0.1', port: 0, managementPort: 0, logLevel: 'silent', gpus: 'none' } as const;
  const store = { modelStore: `${ROOT}test/fixtures/apps` };
  const handle = await serve({ ...quiet, ...store, ...options });
  t.after(() => handle.kill());
  return new ManagedServer(handle);
}

/** The fixture apps of a language as a model store, and the url by which each is registered. */
export function fixtureStore({ app }: Runtime): { store: ServeOptions; url: (name: string) => string } {
  return { store: { modelStore: dirname(app('works')) }, url: (name) => `url=${basename(app(name))}` };
}

/** Cues for the apps, which have the environment of this process. */
export function cuesFor(t: TestContext): Cues {
  const cues = makeCues(t);
  process.env['CUES'] = cues.folder;
  t.after(() => delete process.env['CUES']);
  return cues;
}

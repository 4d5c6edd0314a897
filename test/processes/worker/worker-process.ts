/** A worker process with the test as its front: frames over its fds 3 and 4, its note on fd 5, nothing else in between. */
import { spawn, type ChildProcess } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { BegunNote } from '../../../protocol/wire/begun-note.js';
import { joinPieces } from '../../../protocol/wire/body-assembler.js';
import { Channel } from '../../../protocol/wire/channel.js';
import type { Call, Message, StartSpec } from '../../../protocol/wire/messages.js';
import { BegunFile } from '../../../supervisor/processes/spawn-worker.js';
import { eventually } from '../../helpers/server.js';
import { deferred, type Received } from '../../protocol/streams.js';
import { callWith } from '../../worker/calls.js';

const NODE_WORKER = [process.execPath, fileURLToPath(new URL('../../../worker/main.js', import.meta.url))];

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

type MessageOf<T extends Message['type']> = Extract<Message, { type: T }>;

export class WorkerProcess {
  readonly channel: Channel;
  /** Messages that were not asked for yet. */
  readonly received: Received[] = [];
  /** Types of all messages, in the order they came. */
  readonly order: string[] = [];
  /** Resolves when the process is gone and its frames are read. */
  readonly exit: Promise<Exit>;
  readonly stdout: Promise<string>;
  readonly stderr: Promise<string>;
  readonly #process: ChildProcess;
  readonly #begun = new BegunFile();
  readonly #up: Readable;
  readonly #down: Writable;
  #over = false;
  #wake: (() => void)[] = [];

  constructor(t: TestContext, command: readonly string[] = NODE_WORKER) {
    const [file, ...args] = command as [string, ...string[]];
    this.#process = spawn(file, args, {
      stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe', this.#begun.fd],
      detached: true,
    });
    this.#up = this.#process.stdio[3] as Readable;
    this.#down = this.#process.stdio[4] as Writable;
    this.stdout = allText(this.#process.stdout as Readable);
    this.stderr = allText(this.#process.stderr as Readable);
    const ended = deferred();
    this.channel = new Channel(this.#up, this.#down, {
      onMessage: (message, pieces) => {
        this.received.push({ message, body: joinPieces(pieces) });
        this.order.push(message.type);
        if (message.type === 'loaded') this.#begun.concurrency = message.info.concurrency ?? 1;
        this.#wakeAll();
      },
      onEnd: () => ended.resolve(),
      onWriteError: () => {},
    });
    const exited = new Promise<Exit>((resolve) => {
      this.#process.once('exit', (code, signal) => resolve({ code, signal }));
    });
    this.exit = Promise.all([exited, ended.promise]).then(([exit]) => {
      this.#over = true;
      this.#wakeAll();
      return exit;
    });
    t.after(async () => {
      if (!this.#over) process.kill(-this.pid, 'SIGKILL');
      await this.exit;
      this.#begun.close();
    });
  }

  /** The worker's note. */
  get begun(): BegunNote {
    return this.#begun.read();
  }

  /** Bytes of the worker after its note. */
  get left(): string {
    return this.#begun.readLeft();
  }

  /** Resolves once the note has this call or a later one as begun. */
  async untilBegun(id: number): Promise<void> {
    await eventually(
      () => this.#over || this.begun.id >= id,
      60_000,
      () => `the worker began ${this.begun.id}, not ${id}`,
    );
    if (this.begun.id < id) throw new Error(`the worker is gone and began ${this.begun.id}, not ${id}`);
  }

  get pid(): number {
    return this.#process.pid as number;
  }

  /** The next message of this type that was not asked for yet. */
  async next<T extends Message['type']>(type: T): Promise<Received & { message: MessageOf<T> }> {
    const index = await this.#arrived(({ message }) => message.type === type, type);
    return this.received.splice(index, 1)[0] as Received & { message: MessageOf<T> };
  }

  /** The next message of any type; it stays to be asked for. */
  async peek(): Promise<Received> {
    await this.#arrived(() => true, 'message');
    return this.received[0] as Received;
  }

  /** The next message of any type. */
  async arrival(): Promise<Received> {
    const next = await this.peek();
    this.received.shift();
    return next;
  }

  /** The index of the first such message, once there is one. */
  async #arrived(fits: (received: Received) => boolean, what: string): Promise<number> {
    for (;;) {
      const index = this.received.findIndex(fits);
      if (index >= 0) return index;
      if (this.#over) throw new Error(`the worker is gone and sent no ${what}; stderr: ${await this.stderr}`);
      await new Promise<void>((resolve) => this.#wake.push(resolve));
    }
  }

  send(message: Message, body?: Uint8Array): void {
    this.channel.send(message, body);
    this.channel.flush();
  }

  /** From hello to ready. */
  async start(app: string, spec: Partial<StartSpec> = {}): Promise<void> {
    await this.next('hello');
    this.sendStart(app, spec);
    await this.next('loaded');
    await this.next('ready');
  }

  sendStart(app: string, spec: Partial<StartSpec> = {}): void {
    this.send({
      type: 'start',
      spec: {
        app,
        model: 'default',
        version: '1',
        worker: 0,
        device: { gpu: null, threads: 1 },
        limits: { maxOutputBytes: 64 * 1024 * 1024, streamWindowBytes: 256 * 1024 },
        printMark: '',
        batchSize: 1,
        serverVersion: '0.0.0',
        ...spec,
      },
    });
  }

  call(id: number, body: Uint8Array, fields: Partial<Call> = {}): void {
    const call = callWith({ id, requestId: `r${id}`, bodyBytes: body.length, ...fields });
    this.channel.sendBody(
      { type: 'call', calls: [call], inlineBytes: [body.length], batch: id, last: true },
      id,
      [body],
      body.length,
    );
    this.channel.flush();
  }

  callJson(id: number, input: unknown, fields: Partial<Call> = {}): void {
    this.call(id, Buffer.from(JSON.stringify(input)), fields);
  }

  /** The value of a result that came in one frame. */
  async answer(): Promise<unknown> {
    const { body } = await this.next('result');
    return JSON.parse(body.toString()) as unknown;
  }

  /** Closes both streams, as the death of a front does, or one of them. What was written before arrives. */
  leave(...descriptors: readonly (3 | 4)[]): void {
    if (!descriptors.includes(4)) this.#up.destroy();
    if (!descriptors.includes(3)) this.#down.end();
  }

  /** Raw bytes on the worker's fd 4. */
  writeGarbage(bytes: Uint8Array): void {
    this.#down.write(bytes);
  }

  #wakeAll(): void {
    const wake = this.#wake;
    this.#wake = [];
    for (const resolve of wake) resolve();
  }
}

async function allText(stream: Readable): Promise<string> {
  let text = '';
  for await (const chunk of stream) text += String(chunk);
  return text;
}

/** The process of a worker that a test plays: it sends messages, begins calls, and gives the signs of its end one by one. */
import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';
import type { BegunNote } from '../../../protocol/wire/begun-note.js';
import { Channel } from '../../../protocol/wire/channel.js';
import { PROTOCOL_VERSION, type Message } from '../../../protocol/wire/messages.js';
import type { Exit } from '../../../supervisor/processes/worker-death.js';
import type { WorkerProcess } from '../../../supervisor/processes/spawn-worker.js';
import { Tap } from '../../protocol/streams.js';

/** The members of an output that are used. */
class Output extends EventEmitter {
  closed = false;
}

export class FakeProcess {
  readonly framesIn = new PassThrough();
  readonly framesOut = new Tap();
  readonly stdout = new Output();
  readonly stderr = new Output();
  isFrozen = false;
  readonly #channel = new Channel(new PassThrough(), this.framesIn, {
    onMessage() {},
    onEnd() {},
    onWriteError() {},
  });
  #note: BegunNote = { id: 0, atMs: 0 };
  #onExit: (exit: Exit) => void = () => {};

  constructor(
    readonly pid: number,
    readonly kill: (signal: string) => void,
  ) {}

  /** The process, as the server sees it. */
  get process(): WorkerProcess {
    const { pid, kill, framesIn, framesOut, stdout, stderr } = this;
    return {
      pid,
      kill,
      framesIn: framesIn.pause(),
      framesOut,
      stdout,
      stderr,
      begun: { read: () => this.#note, close() {}, concurrency: 1 },
      stuckAt: () => '',
      isEnding: () => false,
      isFrozen: () => this.isFrozen,
      onExit: (callback: (exit: Exit) => void) => (this.#onExit = callback),
    } as unknown as WorkerProcess;
  }

  send(message: Message): void {
    this.#channel.send(message);
    this.#channel.flush();
  }

  /** It has loaded an app with one route. */
  load(): void {
    this.send({ type: 'hello', protocol: PROTOCOL_VERSION, runtime: 'test' });
    this.send({ type: 'loaded', info: { routes: [ROUTE], modelOptions: {}, example: '' } });
  }

  becomeReady(): void {
    this.load();
    this.send({ type: 'ready', initMs: 1 });
  }

  /** Notes that the first of the calls that it was sent begins. */
  begin(): void {
    const sent = this.framesOut.received.flatMap(({ message }) =>
      message.type === 'call' ? message.calls : [],
    );
    const [{ id } = { id: 0 }] = sent;
    this.#note = { id, atMs: Number(process.hrtime.bigint()) / 1e6 };
  }

  exit(): void {
    this.#onExit({ code: 1, signal: null });
  }

  endStream(): void {
    this.framesIn.end();
  }

  end(): void {
    this.exit();
    this.endStream();
    this.closeOutput();
  }

  closeOutput(): void {
    for (const output of [this.stdout, this.stderr]) {
      output.closed = true;
      output.emit('close');
    }
  }
}

const ROUTE = { path: '/', kind: 'handler', input: 'json', webhook: '', maxBatch: 1, attempts: 1 } as const;

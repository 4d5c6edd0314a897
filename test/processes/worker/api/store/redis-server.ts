/** A real Redis for a test: on a port that stays its own while it is down, nothing on disk, gone with the test. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { holdPort } from '../../../../helpers/held-port.js';

export class RedisServer {
  readonly port: number;
  readonly #args: readonly string[];
  #process: ChildProcess | null = null;

  private constructor(port: number, args: readonly string[]) {
    this.port = port;
    this.#args = args;
  }

  static async start(...args: string[]): Promise<RedisServer> {
    const server = new RedisServer(await holdPort(), args);
    await server.up();
    return server;
  }

  /** @throws if there is no redis-server, or it cannot start */
  async up(): Promise<void> {
    const fixed = ['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--loglevel', 'notice'];
    const child = spawn('redis-server', ['--port', String(this.port), ...fixed, ...this.#args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child, 'spawn');
    let said = '';
    for await (const line of createInterface(child.stdout)) {
      said += `${line}\n`;
      if (/ready to accept connections/i.test(line)) {
        child.stdout.resume();
        this.#process = child;
        return;
      }
    }
    throw new Error(`redis-server did not start:\n${said}`);
  }

  async down(): Promise<void> {
    const child = this.#process;
    if (child === null) return;
    this.#process = null;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  /** SIGSTOP: takes connections, answers nothing; SIGCONT undoes it. */
  signal(signal: NodeJS.Signals): void {
    this.#process?.kill(signal);
  }
}

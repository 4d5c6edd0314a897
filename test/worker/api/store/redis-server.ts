/** A real Redis for a test: on a free port, nothing on disk, gone with the test. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';

export class RedisServer {
  readonly port: number;
  readonly #args: readonly string[];
  #process: ChildProcess | null = null;

  private constructor(port: number, args: readonly string[]) {
    this.port = port;
    this.#args = args;
  }

  static async start(...args: string[]): Promise<RedisServer> {
    for (;;) {
      const server = new RedisServer(await freePort(), args);
      if (await server.up()) return server;
    }
  }

  /** False if somebody else has the port. @throws if there is no redis-server, or it cannot start */
  async up(): Promise<boolean> {
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
        return true;
      }
    }
    if (/address already in use/i.test(said)) return false;
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

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** The requests of Banana's Python clients, sent by a real Python process (test/fixtures/clients/python_clients.py). */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import { ROOT, type Server } from './server.js';

export interface PythonReply {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

interface News {
  readonly id: number;
  readonly reply?: PythonReply;
  readonly thrown?: string;
}

export interface PythonClients {
  /** Calls one of the fixture's functions; rejects with what it raised. */
  send(request: string, args: object): Promise<PythonReply>;
}

export function startPython(t: TestContext, { url }: Pick<Server, 'url'>): PythonClients {
  const { hostname, port } = new URL(url);
  const program = `${ROOT}test/fixtures/clients/python_clients.py`;
  const child = spawn('python3', ['-B', program, hostname, port], { stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => child.kill());
  const waiting = new Map<number, (news: News) => void>();
  createInterface(child.stdout).on('line', (line) => {
    const news = JSON.parse(line) as News;
    waiting.get(news.id)?.(news);
    waiting.delete(news.id);
  });
  child.once('exit', (code) => {
    for (const [id, tell] of waiting) tell({ id, thrown: `python3 ended with ${code}` });
  });
  let sent = 0;
  return {
    send: (request, args) =>
      new Promise((resolve, reject) => {
        sent += 1;
        waiting.set(sent, ({ reply, thrown = 'nothing came' }) => {
          if (reply === undefined) reject(new Error(thrown));
          else resolve(reply);
        });
        child.stdin.write(`${JSON.stringify({ id: sent, do: request, args })}\n`);
      }),
  };
}

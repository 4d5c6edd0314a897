/** One JSON request on a connection of its own, without the pools and the start-up cost of fetch. */
import { request } from 'node:http';

export interface Answer {
  readonly status: number;
  readonly text: string;
  /** `performance.now()` when the status line was read. */
  readonly headAtMs: number;
}

/** Rejects if the connection is refused or breaks. */
export function postOnce(url: string, value: unknown): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = { 'Content-Type': 'application/json' };
    const outgoing = request(url, { method: 'POST', headers, agent: false }, (response) => {
      const headAtMs = performance.now();
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (text += chunk));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text, headAtMs }));
      response.on('error', reject);
    });
    outgoing.on('error', reject);
    outgoing.end(JSON.stringify(value));
  });
}

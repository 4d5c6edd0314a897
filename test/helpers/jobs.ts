/** Requests about jobs, for tests. */
import assert from 'node:assert/strict';
import { call, eventually, type Answer, type Server } from './server.js';

export interface JobPage {
  readonly id: string;
  readonly state: string;
  readonly requestId: string;
  readonly model: string;
  readonly version: string;
  readonly attempts: number;
  readonly begunAt: string | null;
  readonly endedAt: string | null;
  readonly progress: { readonly fraction: number; readonly text: string } | null;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly result?: unknown;
  readonly resultUrl?: string;
  readonly resultDropped?: string;
}

type At = Pick<Server, 'url'>;

const ASYNC = { prefer: 'respond-async' };

/** Starts a job at a route whose clients usually wait, and returns its id. */
export async function startAsync(
  server: At,
  path: string,
  input: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<string> {
  const answer = await callAsync(server, path, JSON.stringify(input), headers);
  assert.equal(answer.status, 202, answer.text);
  return answer.headers.get('x-banana-job-id') as string;
}

export function callAsync(
  server: At,
  path: string,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  return call(server.url + path, body, { 'content-type': 'application/json', ...ASYNC, ...headers });
}

export async function jobPage(server: At, id: string, query = ''): Promise<JobPage> {
  const response = await fetch(`${server.url}/_k/jobs/${id}${query}`);
  assert.equal(response.status, 200, `job ${id} is known`);
  return (await response.json()) as JobPage;
}

/** The job once it has ended. */
export async function jobEnd(server: At, id: string): Promise<JobPage> {
  let page = await jobPage(server, id, '?wait=20s');
  await eventually(
    async () => (page = await jobPage(server, id, '?wait=5s')).endedAt !== null,
    90_000,
    () => JSON.stringify(page),
  );
  return page;
}

export function cancelJob(server: At, id: string): Promise<Response> {
  return fetch(`${server.url}/_k/jobs/${id}`, { method: 'DELETE' });
}

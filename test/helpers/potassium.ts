/** Requests of the tests of Potassium apps. */
import assert from 'node:assert/strict';
import { call, eventually, type Answer, type Server } from './server.js';

export interface PotassiumStatus {
  readonly gpu_available: boolean;
  readonly idle_time: number;
  readonly inference_time: number;
  readonly sequence_number: number;
  readonly workers: number;
  readonly workers_ready: number;
  readonly queue_length: number;
  readonly in_flight: number;
  readonly completed: number;
  readonly failed: number;
  readonly restarts: number;
  readonly uptime: number;
}

export interface KeptJob {
  readonly id: string;
  readonly state: string;
  readonly requestId: string;
  readonly model: string;
  readonly version: string;
  readonly route: string;
  readonly endedAt: string | null;
  readonly runMs: number;
  readonly error: {
    readonly code: string;
    readonly message: string;
    readonly source: string;
    readonly status: number;
  } | null;
  readonly status?: number;
  readonly contentType?: string;
  readonly encoding?: string;
  readonly result: unknown;
}

type At = Pick<Server, 'url'>;

/** POSTs JSON to a path. `id`: the call's, as a Banana client sends it. */
export function post(
  server: At,
  path: string,
  input: unknown,
  id?: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const banana: Record<string, string> = id === undefined ? {} : { 'x-banana-request-id': id };
  const all = { 'content-type': 'application/json', ...banana, ...headers };
  return call(server.url + path, JSON.stringify(input), all);
}

export async function potassiumStatus(server: At, path = '/_k/status'): Promise<PotassiumStatus> {
  return (await (await fetch(server.url + path)).json()) as PotassiumStatus;
}

export async function untilPotassium(
  server: At,
  test: (status: PotassiumStatus) => boolean,
): Promise<PotassiumStatus> {
  let last = await potassiumStatus(server);
  await eventually(
    async () => test((last = await potassiumStatus(server))),
    60_000,
    () => `last status: ${JSON.stringify(last)}`,
  );
  return last;
}

/** Starts a background job and returns its id. */
export async function startJob(server: At, path: string, input: unknown, id?: string): Promise<string> {
  return jobIdOf(await post(server, path, input, id));
}

/** The job of an answer to a background call. */
export function jobIdOf(answer: Answer): string {
  assert.deepEqual([answer.status, answer.text], [200, '{"started":true}\n']);
  const id = answer.headers.get('x-banana-job-id') as string;
  assert.equal(answer.headers.get('location'), `/_k/jobs/${id}`);
  return id;
}

export async function jobOf(server: At, id: string): Promise<KeptJob> {
  const response = await fetch(`${server.url}/_k/jobs/${id}`);
  assert.equal(response.status, 200, `job ${id} is known`);
  return (await response.json()) as KeptJob;
}

/** The job once it has ended. */
export async function endOf(server: At, id: string): Promise<KeptJob> {
  let job = await jobOf(server, id);
  await eventually(
    async () => (job = await jobOf(server, id)).endedAt !== null,
    60_000,
    () => JSON.stringify(job),
  );
  return job;
}

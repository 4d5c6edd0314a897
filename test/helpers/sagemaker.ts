/** SageMaker in front of a container, as its documents describe it: its prefix, its loading of models, its errors. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import type { TestContext } from 'node:test';
import { ROOT } from './server.js';

/** The answer to AWS's own client. */
export interface Invoked {
  readonly json: unknown;
  readonly type: string;
  readonly attributes: string | undefined;
}

/** The error of AWS's own client. */
export interface InvokeError extends Error {
  readonly OriginalStatusCode?: number;
  readonly OriginalMessage?: string;
  readonly $metadata: { readonly httpStatusCode?: number; readonly attempts?: number };
}

export interface Platform {
  /** Calls the endpoint by AWS's own client. Rejects with `InvokeError`. */
  invoke(input: unknown, given?: { TargetModel?: string; CustomAttributes?: string }): Promise<Invoked>;
  /** The models that the container was asked to load and to unload, with its statuses. */
  readonly told: string[];
}

/** The folder for the content of the archive `target`, below the base folder. */
export function folderOfTarget(target: string): string {
  return join('models', nameOf(target), 'model');
}

/** A name of no meaning, which is all that a container learns of a model. */
function nameOf(target: string): string {
  return createHash('md5').update(target).digest('hex');
}

/** `base`: the folder that stands for /opt/ml. */
export async function startPlatform(t: TestContext, container: string, base: string): Promise<Platform> {
  const told: string[] = [];
  const loaded: string[] = [];

  async function change(method: string, path: string, target: string, body: object | null): Promise<number> {
    const init = body === null ? {} : { headers: JSON_TYPE, body: JSON.stringify(body) };
    const { status } = await fetch(`${container}${path}`, { method, ...init });
    told.push(`${method} ${target} ${status}`);
    return status;
  }

  /** Unloads others for one for which there is no room. */
  async function load(target: string): Promise<number> {
    const model = { model_name: nameOf(target), url: join(base, folderOfTarget(target)) };
    const status = await change('POST', '/models', target, model);
    if (status === 200) loaded.push(target);
    const other = status === 507 ? loaded.shift() : undefined;
    if (other === undefined) return status;
    await change('DELETE', `/models/${nameOf(other)}`, other, null);
    return load(target);
  }

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    assert.match(request.url ?? '', /^\/endpoints\/bananas\/invocations$/);
    const target = request.headers['x-amzn-sagemaker-target-model'] as string | undefined;
    if (target !== undefined && !loaded.includes(target)) {
      const status = await load(target);
      if (status !== 200) return refuse(response, status, 'the model cannot be loaded');
    }
    const path = target === undefined ? '/invocations' : `/models/${nameOf(target)}/invoke`;
    const body = await buffer(request);
    const reply = await fetch(container + path, { method: 'POST', headers: passedOn(request.headers), body });
    const bytes = Buffer.from(await reply.arrayBuffer());
    if (!reply.ok) return refuse(response, reply.status, bytes.toString());
    response.writeHead(200, passedOn(Object.fromEntries(reply.headers))).end(bytes);
  };

  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => refuse(response, 500, String(error)));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = pathToFileURL(`${ROOT}test/fixtures/clients/sagemaker-client.mjs`).href;
  const { invoke } = (await import(client)) as {
    invoke(endpoint: string, ...given: Parameters<Platform['invoke']>): Promise<Invoked>;
  };
  return { told, invoke: (...given) => invoke(url, ...given) };
}

const JSON_TYPE = { 'Content-Type': 'application/json' };

function passedOn(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  const named = Object.entries(headers).filter(([name]) => /^content-type$|^x-amzn-sagemaker-/.test(name));
  return Object.fromEntries(named) as Record<string, string>;
}

/** The error of every failure of a container. */
function refuse(response: ServerResponse, status: number, message: string): void {
  response.writeHead(424, { ...JSON_TYPE, 'x-amzn-errortype': 'ModelError' });
  const Message = `Received error (${status}) from primary with message "${message}".`;
  response.end(JSON.stringify({ Message, OriginalMessage: message, OriginalStatusCode: status }));
}

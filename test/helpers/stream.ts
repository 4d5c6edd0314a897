/** A streamed answer that is read only when the test reads it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import type { Server } from './server.js';

/** Resolves with a response whose body is not read yet. */
export async function openStream(server: Server, input: unknown): Promise<IncomingMessage> {
  const call = request(server.url, { method: 'POST', headers: { 'content-type': 'application/json' } });
  call.on('error', () => {}); // once there is a response, its stream reports a broken connection
  call.end(JSON.stringify(input));
  const [response] = (await once(call, 'response')) as [IncomingMessage];
  assert.equal(response.statusCode, 200);
  return response;
}

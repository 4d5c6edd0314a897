/** Reads a body of parameters, such as that of a request which manages models. It takes no place in a queue. */
import type { Admission } from '../../dispatch/arrivals.js';
import type { ServerOptions } from '../../options/resolve.js';
import { bodyLimits, receiveBody } from '../socket/receive-body.js';
import type { RequestContext } from './request-context.js';

const MAX_BYTES = 64 * 1024;

/** Returns the size limit of such a body. */
export function maxSmallBody({ maxBody }: Pick<ServerOptions, 'maxBody'>): number {
  return Math.min(maxBody, MAX_BYTES);
}

const NO_PLACE: Admission = { begin: () => {}, grow: () => {}, complete: () => {}, release: () => {} };

/** Rejects as `receiveBody` does. */
export async function readSmallBody({ backend, request }: RequestContext): Promise<Buffer> {
  const limits = bodyLimits(request, maxSmallBody(backend.options), backend.options.bodyTimeout);
  const { pieces } = await receiveBody(request, limits, NO_PLACE); // too small for slabs, so there is nothing to release
  return Buffer.concat(pieces);
}

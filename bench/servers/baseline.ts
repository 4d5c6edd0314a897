/** The in-process baselines, each in a child process of its own. */
import { compiled, startChildServer, type ChildServer } from './child-server.js';

export type BaselineKind = 'koa' | 'koa-bytes' | 'fastify' | 'bare';

export const BASELINE_NAMES: Readonly<Record<BaselineKind, string>> = {
  koa: 'Koa in process',
  'koa-bytes': 'Koa in process, bytes',
  fastify: 'Fastify in process',
  bare: 'bare node:http',
};

export async function startBaseline(kind: BaselineKind, app: string): Promise<ChildServer> {
  return startChildServer([compiled('servers/baseline-main.js'), kind, app]);
}

/** Health and status, answered by the front at once, however busy the workers are. */
import Router from '@koa/router';
import type { Backend } from '../call/backend.js';

/** Probes have no API key and need none. */
export const HEALTH_PATHS: ReadonlySet<string> = new Set(['/healthcheck', '/livez', '/readyz']);

export function builtinRoutes(backend: Backend): Router {
  const router = new Router({ strict: true, sensitive: true }); // a path is what docs/http.md lists, to the letter

  // The Banana platform's probe: `state` and `gpu` first, any 200 means ready.
  router.get('/healthcheck', (ctx) => {
    const { health } = backend.model;
    ctx.status = health === 'ready' ? 200 : 503;
    ctx.body = { state: health === 'ready' ? 'healthy' : health, gpu: backend.hasGpu };
  });

  // The front is alive if it can answer; restarting it would not mend a model, and would lose the warm workers.
  router.get('/livez', (ctx) => {
    ctx.body = { state: 'alive' };
  });

  router.get('/readyz', (ctx) => {
    const { health } = backend.model;
    ctx.status = health === 'ready' ? 200 : 503;
    ctx.body = { state: health };
  });

  router.get('/status', (ctx) => {
    ctx.body = backend.status();
  });

  return router;
}

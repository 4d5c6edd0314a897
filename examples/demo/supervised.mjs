/** The same model as a function: it runs in a process of its own, which ends after a while without calls. */
import { supervise } from 'banana-serve';
import { listen } from './server.mjs';

const model = await supervise(new URL('model.mjs', import.meta.url), {
  minWorkers: 0,
  idleTimeout: '3s',
});
listen(model, () =>
  model
    .status()
    .workers.map(({ pid }) => pid)
    .filter(Boolean),
);

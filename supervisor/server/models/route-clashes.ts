/** Routes of an app that stand where Multi Model Server has a path: theirs are called, and the operator is told. */
import { calledModel } from '../../http/dialects/mms/called-model.js';
import type { Model } from '../../models/model.js';
import type { Models } from '../../models/models.js';

/** The paths at which the model's own routes are called instead; empty while its app is not loaded. */
export function routeClashes(model: Model, models: Models): string[] {
  const names = new Set(Array.from(models.all(), ({ spec }) => spec.name));
  const prefix = `/models/${model.spec.name}`;
  const paths = [...(model.routes?.keys() ?? [])].flatMap((route) =>
    models.default === model ? [route, prefix + route] : [prefix + route],
  );
  return paths.filter((path) => {
    const called = calledModel(path);
    return called === '' || (called !== null && names.has(called));
  });
}

export function clashText(paths: readonly string[]): string {
  const which = paths.length === 1 ? 'is a route' : 'are routes';
  return `${paths.join(', ')} ${which} of the app, and answered as such: the same path of Multi Model Server gives way.`;
}

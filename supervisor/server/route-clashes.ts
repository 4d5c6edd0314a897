/** Finds routes of an app that hide paths of Multi Model Server: the app answers them, and the operator is warned. */
import { calledModel } from '../http/dialects/mms/path.js';
import type { Model } from '../models/model.js';
import type { Models } from '../models/models.js';

/** The paths that the app answers instead of Multi Model Server's API; empty while the app is not loaded. */
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
  const [what, answers] =
    paths.length === 1
      ? ['is a route', "the app answers it, and Multi Model Server's path of the same name is not served"]
      : [
          'are routes',
          "the app answers them, and Multi Model Server's paths of the same names are not served",
        ];
  return `${paths.join(', ')} ${what} of the app; ${answers}.`;
}

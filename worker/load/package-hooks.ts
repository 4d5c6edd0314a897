/** The thread of import hooks for Node before 22.15. It uses the same resolution as the app's own thread. */
import type { InitializeHook, ResolveHook } from 'node:module';
import { PackageResolution } from './package-resolution.js';

let packages = new PackageResolution([]);

export const initialize: InitializeHook<readonly string[]> = (folders) => {
  packages = new PackageResolution(folders);
};

export const resolve: ResolveHook = (specifier, context, next) =>
  packages.resolve(specifier, context, async (name, given) => await next(name, given));

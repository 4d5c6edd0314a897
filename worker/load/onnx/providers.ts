/** Execution providers: the libraries by which onnxruntime runs a model on a device. */
import { existsSync } from 'node:fs';
import type { Device } from '../../../protocol/wire/messages.js';
import { AppLoadError } from '../explain-load-error.js';

export const CPU = 'cpu';

/** Ends every refusal of a provider. */
export const SERVE_WITHOUT = '`--providers cpu` serves without it.';

/** Names in order of preference. `given`: those of the operator, separated by commas, as typed; may be empty. */
export function providersOf(given: string, { gpu }: Device): readonly string[] {
  if (given !== '') return given.split(',');
  return gpu === null ? [CPU] : ['cuda', CPU]; // with cuda alone, arithmetic on shapes would have no place
}

/** A provider as onnxruntime-node lists it; npm may leave out the libraries of one that is not bundled. */
interface SupportedProvider {
  readonly name: string;
  readonly bundled: boolean;
}

/**
 * Returns the names as onnxruntime has them, after a check of what it does not: it ignores an unknown name if another
 * follows. `libraries`: the folder of its native libraries. @throws AppLoadError with the cure
 */
export function checkedProviders(
  path: string,
  given: readonly string[],
  supported: readonly SupportedProvider[],
  libraries: string,
): readonly string[] {
  const names = supported.map(({ name }) => name);
  const unknown = given.find((name) => !names.includes(name.toLowerCase()));
  if (unknown !== undefined)
    throw new AppLoadError(
      `${path}: this onnxruntime-node has no execution provider ${unknown}; it has ${names.join(', ')}. ${SERVE_WITHOUT}`,
    );
  const providers = given.map((name) => name.toLowerCase());
  const isMissing = ({ name, bundled }: SupportedProvider): boolean =>
    providers.includes(name) && !bundled && !existsSync(`${libraries}/libonnxruntime_providers_${name}.so`);
  const missing = supported.find(isMissing);
  if (missing !== undefined)
    throw new AppLoadError(
      `${path}: onnxruntime cannot use ${missing.name}: npm has left its libraries out. Run: ONNXRUNTIME_NODE_INSTALL=cuda12 npm rebuild onnxruntime-node. ${SERVE_WITHOUT}`,
    );
  return providers;
}

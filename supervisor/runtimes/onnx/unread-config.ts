/** Notices Triton's configuration of a model, so that its absence from our server surprises no one. */
import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

/** One warning if the model lies in a repository of Triton (`name/1/model.onnx`) with a `config.pbtxt`. */
export function unreadConfig(model: string): string[] {
  const version = dirname(model);
  const config = join(dirname(version), 'config.pbtxt');
  if (!/^\d+$/.test(basename(version)) || !existsSync(config)) return [];
  return [
    `${config} is not read: the model describes its inputs and outputs itself, and options set the rest`,
  ];
}

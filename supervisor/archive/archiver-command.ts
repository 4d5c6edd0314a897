/** The archiver's command line: `banana-serve archive …`, or `model-archiver …` for existing scripts. */
import { relative } from 'node:path';
import { Command, CommanderError, Option } from 'commander';
import { archiveModel } from './archiver.js';
import { ARCHIVE_FORMATS, ArchiverProblem, type ArchiveWish } from './model-files.js';
import { ServeError } from '../../protocol/errors.js';
import { RUNTIMES } from '../store/stored-model.js';

/** `args`: arguments without the program's name. Resolves with the exit code: 1 after a failure, 2 for a wrong command line. */
export async function runArchiver(program: string, args: readonly string[]): Promise<number> {
  const say = (text: string): void => void process.stderr.write(`${program}: ${text}\n`);
  const command = describeArchiver(program, say);
  try {
    command.parse(args, { from: 'user' });
  } catch (thrown) {
    if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : 2;
    throw thrown;
  }
  const { convert = false, ...wish } = command.opts<ArchiveWish & { convert?: boolean | string }>();
  if (convert === true)
    say('--convert: files of models go into the archive as they are; nothing is converted');
  return archive(typeof convert === 'string' ? { configFile: convert, ...wish } : wish, say);
}

async function archive(wish: ArchiveWish, say: (text: string) => void): Promise<number> {
  const cwd = process.cwd();
  try {
    const { path, files, warnings } = await archiveModel(wish, cwd);
    for (const warning of warnings) say(warning);
    process.stdout.write(`Wrote ${relative(cwd, path)}: the model ${wish.modelName}, ${files} files.\n`);
    return 0;
  } catch (thrown) {
    const isExpected = thrown instanceof ArchiverProblem || thrown instanceof ServeError;
    const { message, code } = thrown as NodeJS.ErrnoException;
    if (!isExpected && code === undefined) throw thrown; // a mistake of ours
    say(message);
    return 1;
  }
}

function describeArchiver(program: string, say: (text: string) => void): Command {
  const runtimes = RUNTIMES.filter((one) => one !== '');
  return new Command(program)
    .description('Writes an archive of a model, for a model store.')
    .requiredOption('--model-name <name>', 'Name of the model, and of the archive.')
    .option(
      '--model-path <folder>',
      'Folder with the files of the model; without it, the flags below name them.',
    )
    .requiredOption('--handler <handler>', 'file, file:function or file:Class that answers calls.')
    .option('--serialized-file <path>', 'File of the weights.')
    .option('--model-file <path>', "File of the model's architecture.")
    .option(
      '--extra-files <paths>',
      'Further files, and folders whose content is packed; separated by commas.',
    )
    .option('-r, --requirements-file <path>', 'Packed, not installed.')
    .option('--config-file <path>', 'Settings that the handler finds as context.model_yaml_config.')
    .option('-v, --version <version>', "The model's version; default 1.0.")
    .addOption(
      new Option(
        '--runtime <runtime>',
        "The model's runtime; by default found by the handler's file.",
      ).choices(runtimes),
    )
    .option('--export-path <folder>', 'Folder that the archive is written into.', '.')
    .addOption(
      new Option(
        '--archive-format <format>',
        'default: name.mar; zip-store: the same, not compressed; tgz: name.tar.gz; no-archive: a folder.',
      )
        .choices(ARCHIVE_FORMATS)
        .default('default'),
    )
    .option('-f, --force', 'Overwrite an existing archive.', false)
    .option(
      '-c, --convert [path]',
      'For existing scripts: nothing is converted. With a path, the same as --config-file.',
    )
    .allowExcessArguments(false)
    .exitOverride()
    .configureOutput({ outputError: (text) => say(text.replace(/^error: /, '').trimEnd()) });
}

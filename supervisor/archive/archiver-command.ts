/** The archiver's command line: `banana-serve archive …`, or `model-archiver …` for existing scripts. */
import { relative } from 'node:path';
import { Command, Option } from 'commander';
import { runCommand } from '../command/own-command.js';
import { archiveModel } from './archiver.js';
import { ARCHIVE_FORMATS, type ArchiveWish } from './model-files.js';
import { RUNTIMES } from '../store/stored-model.js';

/** `args`: arguments without the program's name. Resolves with the exit code. */
export function runArchiver(program: string, args: readonly string[]): Promise<number> {
  const command = describeArchiver(program);
  return runCommand(command, args, async (say) => {
    const { convert = false, ...wish } = command.opts<ArchiveWish & { convert?: boolean | string }>();
    if (convert === true)
      say('--convert: files of models go into the archive as they are; nothing is converted');
    const cwd = process.cwd();
    const settings = typeof convert === 'string' ? { configFile: convert } : {};
    const { path, files, warnings } = await archiveModel({ ...settings, ...wish }, cwd);
    for (const warning of warnings) say(warning);
    process.stdout.write(`Wrote ${relative(cwd, path)}: the model ${wish.modelName}, ${files} files.\n`);
  });
}

function describeArchiver(program: string): Command {
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
    );
}

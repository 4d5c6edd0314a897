#!/usr/bin/env node
/** `model-archiver`, as Multi Model Server's tool is called. */
import { runArchiver } from './archive/archiver-command.js';

process.exitCode = await runArchiver('model-archiver', process.argv.slice(2));

/** The files of `clients/python` that are generated, so that it knows every shape and every operation. */

import { readFileSync } from 'node:fs';
import { openApiDocument } from '../../schema/openapi.js';
import type { JsonObject } from '../../src/base/json.js';
import { blockingText } from './python-blocking.js';
import { modelsText } from './python-models.js';
import { operationsText } from './python-operations.js';
import { PythonTypes, type Shape } from './python-types.js';
import { repeatsOfPython } from './repeats.js';

const FOLDER = 'clients/python/src/durable_workflow_engine';
/** From where this is built to the root of the repository. */
const ROOT = new URL('../../../', import.meta.url);

/** Their texts by their paths from the root of the repository. */
export function pythonFiles(): Readonly<Record<string, string>> {
  const document = openApiDocument('0.0.0');
  const { schemas } = document.components as JsonObject;
  const types = new PythonTypes(schemas as Record<string, Shape>);
  const client = readFileSync(new URL(`${FOLDER}/async_client.py`, ROOT), 'utf8');
  return {
    [`${FOLDER}/client.py`]: blockingText(client),
    [`${FOLDER}/_repeats.py`]: repeatsOfPython(),
    [`${FOLDER}/models.py`]: modelsText(types),
    [`${FOLDER}/_operations.py`]: operationsText(document, types, { isAsync: false }),
    [`${FOLDER}/_async_operations.py`]: operationsText(document, types, { isAsync: true }),
  };
}

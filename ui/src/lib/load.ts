/** Parts of the dashboard that are loaded when they are first shown, also when the engine is away just then. */

import { type ComponentType, lazy } from 'react';

const LOOK_EVERY_MS = 2000;

/**
 * Like `lazy` of React, which keeps a failure for good. While the engine is away its place stays empty; with the engine
 * back, the whole page is loaded anew, since it may be another version with other files.
 */
// biome-ignore lint/suspicious/noExplicitAny: as React has it, so that properties are inferred
export function later<Part extends ComponentType<any>>(load: () => Promise<{ default: Part }>) {
  return lazy(() => load().catch(onFailure));
}

async function onFailure(error: unknown): Promise<never> {
  if (await isEngineThere()) throw error;
  do await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  while (!(await isEngineThere()));
  location.reload();
  return new Promise(() => undefined);
}

function isEngineThere(): Promise<boolean> {
  return fetch(document.baseURI, { method: 'HEAD', cache: 'no-store' }).then(
    ({ ok }) => ok,
    () => false,
  );
}

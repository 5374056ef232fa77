/**
 * The licences of what is shipped beside our own code: every production package of the lock file, as it
 * lies in the image and is loaded by an installed server, and what the built dashboard has taken in. Optional
 * packages are not in the image.
 */

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { bundledFolders } from './ui.mjs';

/** Files that hold a licence or a notice, in the order in which they are shown. */
const LEGAL_FILES = [
  /^licen[cs]e(?:\.(?:md|txt))?$/i,
  /^notice(?:\.(?:md|txt))?$/i,
  /\.LICENSE\.txt$/,
];

/** Packages without a licence file say it at the end of their README. */
const LICENCE_SECTION = /^#+ *licen[cs]e *$([\s\S]*)/im;

/** Packages that bring no text of theirs, only a notice at the head of a file; their licence is ours. */
const NOTICES_IN = { '@btc-vision/uwebsockets.js': 'uws.js' };

/** Licences that name nobody, so that their text is the same everywhere: of packages that bring none. */
const COMMON_TEXTS = {
  Unlicense: `This is free and unencumbered software released into the public domain.

Anyone is free to copy, modify, publish, use, compile, sell, or
distribute this software, either in source code form or as a compiled
binary, for any purpose, commercial or non-commercial, and by any
means.

In jurisdictions that recognize copyright laws, the author or authors
of this software dedicate any and all copyright interest in the
software to the public domain. We make this dedication for the benefit
of the public at large and to the detriment of our heirs and
successors. We intend this dedication to be an overt act of
relinquishment in perpetuity of all present and future rights to this
software under copyright law.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND,
EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT.
IN NO EVENT SHALL THE AUTHORS BE LIABLE FOR ANY CLAIM, DAMAGES OR
OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE,
ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR
OTHER DEALINGS IN THE SOFTWARE.

For more information, please refer to <https://unlicense.org>`,
};

const RULE = '='.repeat(80);

/** `{ name, version, licence, folder }` of each, by name. The dashboard must have been built. */
export function shippedPackages(root) {
  const { packages } = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8'));
  const bundled = new Set(bundledFolders());
  return Object.entries(packages)
    .filter(
      ([folder, { dev, optional, devOptional }]) =>
        bundled.has(folder) || (folder !== '' && !dev && !optional && !devOptional),
    )
    .map(([folder, { name, version, license }]) => ({
      name: name ?? folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length),
      version,
      licence: license,
      folder,
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/**
 * The text of the file THIRD-PARTY-LICENSES.txt.
 * @throws Error that names a package without a licence text
 */
export function thirdPartyText(root) {
  const parts = shippedPackages(root).map(({ name, version, licence, folder }) => {
    const noticeIn = NOTICES_IN[name];
    const texts =
      noticeIn === undefined
        ? legalTexts(path.join(root, folder))
        : [
            noticeOf(path.join(root, folder, noticeIn)),
            tidy(readFileSync(path.join(root, 'LICENSE'), 'utf8')),
          ];
    if (texts.length === 0 && licence in COMMON_TEXTS) texts.push(COMMON_TEXTS[licence]);
    if (texts.length === 0) throw new Error(`${name} has no licence text: look at it by hand`);
    return `${RULE}\n${name} ${version} (${licence})\n${RULE}\n\n${texts.join('\n\n')}\n`;
  });
  return [
    'The server and its dashboard are shipped with these packages. `npm run generate` writes this file.\n',
    ...parts,
  ].join('\n');
}

function noticeOf(file) {
  const [notice = ''] = /^\/\*[\s\S]*?\*\//.exec(readFileSync(file, 'utf8')) ?? [];
  return tidy(notice);
}

function legalTexts(folder) {
  const names = readdirSync(folder);
  const files = LEGAL_FILES.flatMap((pattern) => names.filter((name) => pattern.test(name)).sort());
  const texts = files.map((name) => tidy(readFileSync(path.join(folder, name), 'utf8')));
  if (texts.length > 0) return texts;
  const readme = names.find((name) => /^readme\.md$/i.test(name));
  if (readme === undefined) return [];
  const section = LICENCE_SECTION.exec(readFileSync(path.join(folder, readme), 'utf8'));
  return section === null ? [] : [tidy(section[1])];
}

const tidy = (text) =>
  text
    .replaceAll('\r\n', '\n')
    .replace(/[ \t]+$/gm, '')
    .trim();

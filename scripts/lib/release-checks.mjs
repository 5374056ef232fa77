/** What must be so before a version is released, by what the repository says. */

/** Numbers with dots, as npm and git tags take them, and what may follow for a version before. */
const VERSION = /^\d+\.\d+\.\d+(?:-[\w.]+)?$/;

/**
 * @param facts `version` of package.json, the text of the `changelog`, git's short `status`, and its `tags`
 * @returns a sentence for each thing that is not ready
 */
export function releaseProblems({ version, changelog, status, tags }) {
  const problems = [];
  if (status.trim() !== '') problems.push('the work tree has changes that are not committed');
  if (!VERSION.test(version)) problems.push(`${version} in package.json is no version`);
  if (tags.includes(`v${version}`)) {
    problems.push(`v${version} was released already: raise version in package.json`);
  }
  const heading = changelog
    .split('\n')
    .find((line) => line === `## ${version}` || line.startsWith(`## ${version} `));
  if (heading === undefined) problems.push(`CHANGELOG.md has no section ## ${version}`);
  else if (!/ \d{4}-\d\d-\d\d$/.test(heading)) {
    problems.push(`the section ${heading} of CHANGELOG.md has no date: ## ${version} YYYY-MM-DD`);
  }
  return problems;
}

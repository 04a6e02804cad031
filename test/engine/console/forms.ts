/** The hands of an operator in the console: they follow links, fill forms, and read what the page says. */
import type { Locator, Page } from 'playwright-core';
import { expect } from 'vitest';
import { visitPath } from '../../facades/console/open-page.ts';

/** Presses a button and fills the fields of its form by their labels. Waits until the service has accepted the form. */
export async function submit(place: Page | Locator, button: string, values: Record<string, string>): Promise<void> {
  const page = 'page' in place ? place.page() : place;
  await place.getByRole('button', { name: button, exact: true }).first().click();
  const form = page.getByRole('dialog');
  for (const [label, value] of Object.entries(values)) {
    const field = form.getByLabel(new RegExp(`^${label}( \\(UTC\\))?( optional)?$`));
    const others = form.locator('details:not([open]) > summary');
    if (!(await field.isVisible()) && (await others.count())) await others.click();
    const isChoice = (await field.evaluate(({ tagName }) => tagName)) === 'SELECT';
    await (isChoice ? field.selectOption({ label: value }) : field.fill(value));
  }
  const confirmation = form.getByLabel(/^Type .* to confirm/);
  if (await confirmation.count()) await confirmation.fill(await form.locator('label code').innerText());
  await form.getByRole('button', { name: button, exact: true }).click();
  const closed = form.waitFor({ state: 'detached' });
  const question = form.getByRole('button', { name: 'Yes, do it' });
  // The words of a refusal say more than a form that does not close.
  await Promise.race([closed, question.waitFor(), form.locator('.problem').first().waitFor()]).catch(() => {});
  if (await question.isVisible()) await question.click();
  await Promise.race([closed, form.locator('.problem').first().waitFor()]).catch(() => {});
  expect(await form.locator('.problem').allInnerTexts()).toEqual([]);
  await closed;
}

/** Opens the row of a list that has a cell with these words. @returns its details */
export async function openRow(page: Page, cell: string | RegExp): Promise<Locator> {
  await page.getByRole('gridcell', { name: cell }).first().click();
  return page.getByRole('complementary', { name: 'Details' });
}

/** Follows a step of the first page that is open, to the page where the operator takes it. */
export async function follow(page: Page, step: string): Promise<void> {
  await visitPath(page, '');
  const link = page.getByRole('link', { name: step });
  await link.waitFor();
  expect(await link.innerText()).not.toContain('done');
  await link.click();
}

/** Waits until the first page says that a step is done. */
export async function isDone(page: Page, step: string): Promise<void> {
  await visitPath(page, '');
  await page.getByRole('link', { name: new RegExp(`${step}.*done`, 's') }).waitFor();
}

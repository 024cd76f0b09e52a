// Light, dark or as the system: set before the first paint, so that nobody in the dark is dazzled.

(() => {
  const SIGNS = { auto: "◐", light: "☀", dark: "☾" };
  const THEMES = Object.keys(SIGNS);
  let theme = "auto";
  try {
    theme = localStorage.getItem("munjang-theme");
  } catch {
    // a browser that keeps nothing goes by the system
  }
  if (!THEMES.includes(theme)) theme = "auto";

  function apply() {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    const button = document.getElementById("theme");
    if (!button) return; // the body is not there yet
    button.textContent = SIGNS[theme];
    button.dataset.sayLabel = `theme_${theme}`;
    document.dispatchEvent(new Event("themechange")); // whoever knows the language says the label
  }

  apply();
  addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme").addEventListener("click", () => {
      theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
      try {
        localStorage.setItem("munjang-theme", theme);
      } catch {
        // private windows may refuse
      }
      apply();
    });
    apply();
  });
})();

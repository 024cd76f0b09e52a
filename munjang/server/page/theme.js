// Before the first paint: the theme that was chosen here, so that nobody in the dark is dazzled.
try {
  const theme = localStorage.getItem("munjang-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // a browser that keeps nothing goes by the system
}

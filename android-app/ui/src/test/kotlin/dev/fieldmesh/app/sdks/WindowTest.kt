package dev.fieldmesh.app.sdks

import android.graphics.Bitmap
import android.graphics.Canvas
import android.graphics.Color
import android.graphics.Insets
import android.graphics.Paint
import android.graphics.Rect
import android.graphics.drawable.AdaptiveIconDrawable
import android.graphics.drawable.Drawable
import android.os.Build
import android.view.View
import android.view.ViewGroup
import android.view.WindowInsets
import android.window.WindowOnBackInvokedDispatcher
import dev.fieldmesh.app.Fieldmesh
import dev.fieldmesh.app.MainActivity
import dev.fieldmesh.app.R
import org.junit.Assume.assumeTrue
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.Robolectric
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.Shadows.shadowOf
import org.robolectric.annotation.Config
import java.io.File
import kotlin.math.hypot
import kotlin.test.assertEquals
import kotlin.test.assertFalse
import kotlin.test.assertNotNull
import kotlin.test.assertTrue

/** How the app stands among what Android itself draws and reads: its bars, its gesture that leads back, its icons. */
@RunWith(RobolectricTestRunner::class)
@Config(application = FlowTest.App::class, qualifiers = PORTRAIT)
class WindowTest {
    private val app get() = RuntimeEnvironment.getApplication() as Fieldmesh
    private val activity by lazy { Robolectric.buildActivity(MainActivity::class.java).setup().get() }
    private val sdk = Build.VERSION.SDK_INT

    private fun tap(id: Int) = assertTrue(activity.findViewById<View>(id).performClick())

    private fun save(picture: Bitmap, name: String) {
        val folder = File(System.getProperty("fieldmesh.screenshots")).apply { mkdirs() }
        File(folder, "$name-api$sdk.png").outputStream().use { picture.compress(Bitmap.CompressFormat.PNG, 100, it) }
    }

    /** What the bars and a cutout take of the screen, and of its lower edge the keyboard. */
    private fun dispatch(bars: Rect, ime: Int = 0) {
        val insets = WindowInsets.Builder()
            .setInsets(WindowInsets.Type.statusBars(), Insets.of(0, bars.top, 0, 0))
            .setInsets(WindowInsets.Type.navigationBars(), Insets.of(0, 0, bars.right, bars.bottom))
            .setInsets(WindowInsets.Type.displayCutout(), Insets.of(bars.left, bars.top, 0, 0))
            .setInsets(WindowInsets.Type.ime(), Insets.of(0, 0, 0, ime))
            .build()
        val root = activity.findViewById<View>(R.id.root)
        root.dispatchApplyWindowInsets(insets)
        val screen = activity.resources.displayMetrics
        root.measure(exactly(screen.widthPixels), exactly(screen.heightPixels))
        root.layout(0, 0, screen.widthPixels, screen.heightPixels)
    }

    private fun exactly(pixels: Int) = View.MeasureSpec.makeMeasureSpec(pixels, View.MeasureSpec.EXACTLY)

    /** All that is not a frame, scrolled to or not, is beside what is taken; the last screen is kept as a picture. */
    private fun assertClear(bars: Rect, ime: Int, name: String) {
        assumeTrue("Android 10 keeps an app clear by itself", sdk >= Build.VERSION_CODES.R)
        val screen = activity.resources.displayMetrics
        val free = Rect(
            bars.left,
            bars.top,
            screen.widthPixels - bars.right,
            screen.heightPixels - maxOf(bars.bottom, ime),
        )
        for (tab in TABS) {
            tap(tab)
            dispatch(bars, ime)
            val root = activity.findViewById<ViewGroup>(R.id.root)
            for (v in listOf(activity.findViewById<View>(R.id.content)) + root.touched()) {
                val at = Rect(0, 0, v.width, v.height).also { root.offsetDescendantRectToMyCoords(v, it) }
                val isFrame = v.id == R.id.content || v.parent === activity.findViewById(R.id.tabs)
                assertTrue(at.left >= free.left && at.right <= free.right, "$v is at $at, beside $free")
                if (isFrame) assertTrue(at.height() > 0 && free.contains(at), "$v is at $at, outside of $free")
            }
        }
        val picture = Bitmap.createBitmap(screen.widthPixels, screen.heightPixels, Bitmap.Config.ARGB_8888)
        Canvas(picture).apply {
            drawColor(activity.getColor(R.color.ground))
            activity.findViewById<View>(R.id.root).draw(this)
            val taken = Paint().apply { color = Color.argb(96, 200, 0, 0) }
            clipOutRect(free)
            drawPaint(taken)
        }
        save(picture, name)
    }

    private fun View.touched(): List<View> = when {
        visibility != View.VISIBLE -> emptyList()
        isClickable -> listOf(this)
        this is ViewGroup -> (0 until childCount).flatMap { getChildAt(it).touched() }
        else -> emptyList()
    }

    @Test
    fun `nothing is below the bars`() = assertClear(Rect(0, 84, 0, 126), ime = 0, name = "edges-portrait")

    @Test
    @Config(qualifiers = LANDSCAPE)
    fun `nothing is below the bars and the cutout of a phone that is turned`() =
        assertClear(Rect(84, 63, 126, 0), ime = 0, name = "edges-landscape")

    @Test
    fun `what is typed into is above the keyboard`() =
        assertClear(Rect(0, 84, 0, 126), ime = 900, name = "edges-keyboard")

    /** What Android does for the gesture: since 13 what was registered last, before that the activity's own method. */
    private fun goBack() {
        if (sdk >= Build.VERSION_CODES.TIRAMISU) {
            assertNotNull(topCallback(), "there is nothing registered").onBackInvoked()
        } else {
            @Suppress("DEPRECATION")
            activity.onBackPressed()
        }
        shadowOf(app.mainLooper).idle()
    }

    private fun topCallback() =
        (activity.window.decorView.findOnBackInvokedDispatcher() as WindowOnBackInvokedDispatcher).topCallback

    @Test
    fun `back leads from the settings to the trial, and leaves the app there`() {
        // Robolectric does not read that of the manifest.
        assertTrue("enableOnBackInvokedCallback=\"true\"" in File("src/main/AndroidManifest.xml").readText())
        if (sdk >= Build.VERSION_CODES.TIRAMISU) app.applicationInfo.setEnableOnBackInvokedCallback(true)
        tap(R.id.tab_drive)
        val leaves = if (sdk >= Build.VERSION_CODES.TIRAMISU) topCallback() else null
        tap(R.id.open_settings)
        goBack()
        assertTrue(activity.findViewById<View>(R.id.tab_drive).isSelected)
        assertFalse(activity.isFinishing)
        if (sdk >= Build.VERSION_CODES.TIRAMISU) {
            assertEquals(leaves, topCallback(), "Android shows what is behind the app")
        } else {
            goBack()
            assertTrue(activity.isFinishing)
        }
    }

    @Test
    fun `the icon is whole in any mask, and has one colour where Android wants that`() {
        val icon = app.getDrawable(app.applicationInfo.icon) as AdaptiveIconDrawable
        val layers = listOfNotNull(
            icon.foreground,
            if (sdk >= Build.VERSION_CODES.TIRAMISU) assertNotNull(icon.monochrome) else null,
        )
        for (layer in layers) {
            val drawn = draw(layer)
            val farthest = (0 until SIDE * SIDE).filter { Color.alpha(drawn.getPixel(it % SIDE, it / SIDE)) > 0 }
                .maxOf { hypot(it % SIDE + 0.5 - SIDE / 2, it / SIDE + 0.5 - SIDE / 2) }
            assertTrue(farthest <= SIDE * 33.0 / 108, "it reaches $farthest of $SIDE")
            assertTrue(farthest > SIDE * 25.0 / 108, "it is small: $farthest of $SIDE")
        }
        val ground = draw(icon.background)
        assertEquals(app.getColor(R.color.launcher), ground.getPixel(0, 0))
        save(draw(icon), "icon")
    }

    private fun draw(what: Drawable): Bitmap = Bitmap.createBitmap(SIDE, SIDE, Bitmap.Config.ARGB_8888).also {
        what.setBounds(0, 0, SIDE, SIDE)
        what.draw(Canvas(it))
    }

    private companion object {
        const val SIDE = 432
        val TABS = listOf(
            R.id.tab_drive,
            R.id.tab_campaign,
            R.id.tab_track,
            R.id.tab_node,
            R.id.open_settings,
            R.id.tab_pair,
        )
    }
}

private const val PORTRAIT = "w411dp-h891dp-port-420dpi"
private const val LANDSCAPE = "w891dp-h411dp-land-420dpi"

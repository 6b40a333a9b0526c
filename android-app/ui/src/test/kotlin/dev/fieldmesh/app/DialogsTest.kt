package dev.fieldmesh.app

import android.Manifest.permission.ACCESS_FINE_LOCATION
import android.Manifest.permission.CAMERA
import android.Manifest.permission.RECORD_AUDIO
import android.app.Activity.RESULT_OK
import android.app.AlertDialog
import android.content.Intent
import android.content.pm.PackageManager.PERMISSION_DENIED
import android.graphics.Bitmap
import android.graphics.Canvas
import android.graphics.Color
import android.graphics.Rect
import android.net.Uri
import android.view.View
import android.widget.Button
import android.widget.EditText
import android.widget.ListView
import android.widget.TextView
import dev.fieldmesh.core.agent.Admission
import dev.fieldmesh.core.agent.FleetNode
import dev.fieldmesh.core.agent.Heard
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.Pin
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.Robolectric
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.Shadows.shadowOf
import org.robolectric.annotation.Config
import org.robolectric.shadows.ShadowAlertDialog
import java.io.ByteArrayOutputStream
import java.io.File
import kotlin.test.assertEquals
import kotlin.test.assertNotNull
import kotlin.test.assertTrue

/** Dialogs are drawn by the platform, and are held to what the screens are held to. */
@RunWith(RobolectricTestRunner::class)
@Config(application = TestApp::class, qualifiers = "w411dp-h891dp-port-420dpi")
class DialogsTest {
    private val app get() = RuntimeEnvironment.getApplication() as TestApp
    private val activity by lazy { Robolectric.buildActivity(MainActivity::class.java).setup().get() }
    private val faults = mutableListOf<String>()

    @Test
    fun light() = all("light")

    @Test
    @Config(qualifiers = "+night")
    fun night() = all("night")

    @Test
    @Config(qualifiers = "w891dp-h411dp-land-420dpi")
    fun landscape() = all("land")

    @Test
    @Config(qualifiers = "+de")
    fun germanInALargeFont() {
        RuntimeEnvironment.setFontScale(1.5f)
        all("german-large")
    }

    private fun all(variant: String) {
        check("node-$variant", ::chooseNode)
        check("trial-$variant", ::judgeTrial)
        check("denied-$variant") { deny(1, ACCESS_FINE_LOCATION) }
        check("denied-camera-$variant") { deny(5, CAMERA) }
        check("denied-microphone-$variant") { deny(6, RECORD_AUDIO) }
        check("saved-$variant", ::saveLog)
        assertTrue(faults.isEmpty(), faults.joinToString("\n"))
    }

    private fun idle() = shadowOf(app.mainLooper).idle()

    private fun press(id: Int) {
        activity.findViewById<View>(id).performClick()
        idle()
    }

    private fun chooseNode() {
        val names = listOf("alpha", "bravo")
        app.controller = { Admission(names.map { FleetNode(it, Pairing("127.0.0.1", 1, Pin("ab".repeat(32)))) }) }
        press(R.id.tab_pair)
        activity.findViewById<EditText>(R.id.line).setText(ExperimentTest.CODE)
        press(R.id.pair)
    }

    private fun judgeTrial() {
        app.session.pair(Pairing("127.0.0.1", 1, Pin("ab".repeat(32))))
        idle()
        for (told in listOf(Heard.Plan(States.schedule), Heard.View(States.view))) assertTrue(app.heard.tryEmit(told))
        press(R.id.tab_campaign)
        activity.findViewById<ListView>(R.id.trials).run {
            performItemClick(adapter.getView(0, null, this), 0, getItemIdAtPosition(0))
        }
    }

    private fun deny(code: Int, permission: String) =
        activity.onRequestPermissionsResult(code, arrayOf(permission), intArrayOf(PERMISSION_DENIED))

    private fun saveLog() {
        val file = Uri.parse("content://files/log")
        shadowOf(app.contentResolver).registerOutputStream(file, ByteArrayOutputStream())
        press(R.id.tab_node)
        press(R.id.save_log)
        val asked = shadowOf(activity).nextStartedActivityForResult.intent
        shadowOf(activity).receiveResult(asked, RESULT_OK, Intent().setData(file))
    }

    private fun check(picture: String, open: () -> Unit) {
        ShadowAlertDialog.reset()
        open()
        val until = System.nanoTime() + 10_000_000_000
        while (ShadowAlertDialog.getLatestAlertDialog() == null && System.nanoTime() < until) {
            idle()
            Thread.sleep(10)
        }
        idle()
        val dialog = assertNotNull(ShadowAlertDialog.getLatestAlertDialog(), picture)
        val root = dialog.window!!.decorView.apply { jumpDrawablesToCurrentState() }
        val drawn = Bitmap.createBitmap(root.width, root.height, Bitmap.Config.ARGB_8888)
        root.draw(Canvas(drawn))
        save(drawn, "dialog-$picture")
        val shown = root.all().filter { it.isShown && it.width > 0 }.toList()
        assertTrue(shown.any { it is TextView }, picture)
        val rows = shown.filterIsInstance<ListView>().flatMap { list -> List(list.childCount, list::getChildAt) }
        val texts = (shown + rows).filterIsInstance<TextView>()
        for (v in texts) checkText(v, drawn, picture)
        for (v in texts.filter { it is Button || it is EditText || it in rows }) checkTouch(v, picture)
        for (v in texts.filterIsInstance<EditText>()) checkEdge(v, root, picture)
        checkDanger(dialog, picture)
        dialog.dismiss()
        idle()
    }

    private fun expect(holds: Boolean, otherwise: String) {
        if (!holds) faults += otherwise
    }

    private fun save(drawn: Bitmap, picture: String) {
        val pictures = File(System.getProperty("fieldmesh.screenshots")).apply { mkdirs() }
        File(pictures, "$picture.png").outputStream().use { drawn.compress(Bitmap.CompressFormat.PNG, 100, it) }
    }

    /** Every text stands out from the ground that is drawn there by 7 : 1, and is whole. */
    private fun checkText(v: TextView, drawn: Bitmap, picture: String) {
        val words = v.text.ifEmpty { v.hint ?: return }
        val at = bounds(v)
        val ground = drawn.getPixel(at.centerX(), at.top + 1)
        assertEquals(255, Color.alpha(ground), "$picture: nothing is drawn behind \"$words\"")
        val found = contrast(if (v.text.isEmpty()) v.currentHintTextColor else v.currentTextColor, ground)
        expect(found >= 7.0, "$picture: \"%s\" stands out by %.1f : 1".format(words, found))
        val layout = v.layout ?: return
        expect((0 until layout.lineCount).all { layout.getEllipsisCount(it) == 0 }, "$picture: \"$words\" is cut")
        val isAltered = v.transformationMethod?.getTransformation(words, v)?.let { it.toString() != words.toString() }
        expect(v !is Button || isAltered != true, "$picture: \"$words\" is in capitals")
    }

    private fun checkTouch(v: TextView, picture: String) {
        val least = app.resources.getDimensionPixelSize(R.dimen.touch)
        expect(v.height >= least, "$picture: \"${v.text}\" is ${v.height} pixels high, least is $least")
        expect(v.width >= least, "$picture: \"${v.text}\" is ${v.width} pixels wide, least is $least")
    }

    /** What is typed stands under the title, and not at the dialog's very edge. */
    private fun checkEdge(v: View, root: View, picture: String) {
        val least = app.resources.getDimensionPixelSize(R.dimen.edge)
        val frame = Rect(0, 0, root.width, root.height).apply {
            left += root.paddingLeft + least
            right -= root.paddingRight + least
        }
        val at = bounds(v)
        expect(frame.left <= at.left && at.right <= frame.right, "$picture: the input from ${at.left} to ${at.right}")
    }

    /** What deletes is red, and 16 dp away from what does not. */
    private fun checkDanger(dialog: AlertDialog, picture: String) {
        val buttons = (-3..-1).mapNotNull(dialog::getButton).filter { it.isShown && it.text.isNotEmpty() }
        val (dangers, others) = buttons.partition { it.text == app.getString(R.string.log_delete) }
        val least = (16 * app.resources.displayMetrics.density).toInt()
        for (danger in dangers) {
            expect(danger.currentTextColor == app.getColor(R.color.bad), "$picture: \"${danger.text}\" is not red")
            val around = bounds(danger).apply { inset(-least, -least) }
            for (other in others) {
                expect(!Rect.intersects(around, bounds(other)), "$picture: ${danger.text} is beside ${other.text}")
            }
        }
    }

    private fun bounds(v: View) = IntArray(2).also(v::getLocationInWindow).let { (x, y) ->
        Rect(x, y, x + v.width, y + v.height)
    }
}

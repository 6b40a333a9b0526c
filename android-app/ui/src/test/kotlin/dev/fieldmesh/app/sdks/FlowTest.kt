package dev.fieldmesh.app.sdks

import android.app.AlertDialog
import android.content.DialogInterface.BUTTON_NEGATIVE
import android.content.DialogInterface.BUTTON_NEUTRAL
import android.content.DialogInterface.BUTTON_POSITIVE
import android.view.View
import android.view.ViewGroup
import android.widget.EditText
import android.widget.ListView
import android.widget.TextView
import com.sun.net.httpserver.HttpExchange
import dev.fieldmesh.app.Fieldmesh
import dev.fieldmesh.app.MainActivity
import dev.fieldmesh.app.R
import dev.fieldmesh.core.TlsServer
import dev.fieldmesh.core.agent.Identity
import dev.fieldmesh.core.newIdentity
import dev.fieldmesh.core.send
import org.json.JSONObject
import org.junit.After
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.Robolectric
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.Shadows.shadowOf
import org.robolectric.annotation.Config
import org.robolectric.shadows.ShadowAlertDialog
import java.io.File
import java.time.Duration
import java.util.concurrent.CopyOnWriteArrayList
import kotlin.test.assertEquals
import kotlin.test.assertNotEquals
import kotlin.test.assertTrue
import kotlin.test.fail

/**
 * The app with a node that answers over TLS what protocols/wire has. Of the app's own code all that is named here is
 * named by Android's manifest too, but for the key and the folder that [App] replaces: R8 may do with the rest what it
 * does in the APK.
 */
@RunWith(RobolectricTestRunner::class)
@Config(application = FlowTest.App::class, qualifiers = "w411dp-h891dp-port-420dpi")
class FlowTest {
    /** There is no Android Keystore on a desk, and nothing is laid out to be started. */
    class App : Fieldmesh() {
        override fun identity(): Identity = key

        override val programs get() = File(filesDir, "programs")
    }

    @Volatile private var state = "armed"

    /** The newest at trial 2, whose former ones were rejected; 0: it was never driven. */
    @Volatile private var attempt = 1
    private val posted = CopyOnWriteArrayList<Pair<String, JSONObject>>()
    private val server = TlsServer(node, key, ::answer)
    private val activity = Robolectric.buildActivity(MainActivity::class.java).setup()

    private fun golden(name: String) = File(System.getProperty("fieldmesh.golden"), "$name.json").readText()

    private fun answer(call: HttpExchange) {
        val path = call.requestURI.path
        val body = call.requestBody.reader().readText()
        if (body.isNotEmpty()) posted += path to JSONObject(body)
        when (path) {
            "/v1/node" -> call.send(200, golden("body_node_status"))
            "/v1/runs/velocity-1/schedule" -> call.send(200, golden("body_schedule"))
            "/v1/runs/velocity-1", "/v1/runs/velocity-1/abort" -> call.send(200, view())
            "/v1/records" -> {
                call.responseHeaders.add("Fieldmesh-Epoch", "5f0c9a7e1b2d4c36")
                call.responseHeaders.add("Fieldmesh-Last", "48213")
                call.send(200, JSONObject(golden("record_station")).toString() + "\n")
            }
            "/v1/notes" -> call.send(200, golden("body_spool_position"))
            else -> call.send(404, golden("body_error"))
        }
    }

    private fun view(): String {
        Thread.sleep(20) // in place of the wait for another version
        val view = JSONObject(golden("body_campaign_view")).put("state", state)
        if (attempt == 0) view.remove("current") else view.getJSONObject("current").put("attempt", attempt)
        val over = view.getJSONArray("trials").getJSONObject(1).getJSONArray("attempts")
        for (n in 1 until attempt) {
            over.put(JSONObject(mapOf("trial" to 2, "attempt" to n, "outcome" to "rejected", "final" to true)))
        }
        return view.toString()
    }

    private fun text(id: Int) = activity.get().findViewById<TextView>(id).text.toString()

    private fun string(id: Int, vararg with: Any) = activity.get().getString(id, *with)

    private fun tap(id: Int) = assertTrue(activity.get().findViewById<View>(id).performClick())

    private fun pass(time: Duration) = shadowOf(RuntimeEnvironment.getApplication().mainLooper).idleFor(time)

    private fun waitUntil(what: String, holds: () -> Boolean) {
        repeat(WAITS) {
            if (holds()) return
            pass(Duration.ofMillis(50))
            Thread.sleep(10)
        }
        fail("$what, in time")
    }

    private fun waitUntil(id: Int, text: String) = waitUntil("\"$text\" instead of \"${text(id)}\"") {
        text(id) == text
    }

    private fun pair() {
        tap(R.id.tab_pair)
        activity.get().findViewById<EditText>(R.id.line).setText("fieldmesh:127.0.0.1:${server.port}#${node.pin.hex}")
        tap(R.id.pair)
        waitUntil(R.id.link, string(R.string.link_up, "car"))
    }

    @After
    fun end() {
        activity.pause().stop().destroy()
        server.close()
    }

    @Test
    fun `every screen opens`() {
        val roots = TABS.map { tab ->
            tap(tab)
            activity.get().findViewById<ViewGroup>(R.id.content).getChildAt(0)
        }
        assertEquals(TABS.size, roots.toSet().size)
        assertNotEquals("", text(R.id.link))
    }

    @Test
    fun `a node is paired by its line, and its trial is followed and aborted`() {
        pair()
        tap(R.id.tab_drive)
        waitUntil(R.id.trial, string(R.string.trial_of, 2, 2, 1))
        assertEquals("50", text(R.id.speed))
        state = "running"
        waitUntil("a signal of -61 dBm") {
            "-61 dBm" in activity.get().findViewById<View>(R.id.signal).contentDescription
        }
        tap(R.id.abort)
        tap(R.id.abort)
        waitUntil("the abort") { posted.any { (path, _) -> path == "/v1/runs/velocity-1/abort" } }
        val asked = posted.single { (path, _) -> path.endsWith("/abort") }.second
        assertEquals(listOf(2, 1), listOf(asked.getInt("trial"), asked.getInt("attempt")))
    }

    @Test
    fun `a second tap aborts the attempt that the first was of, and no other`() {
        pair()
        tap(R.id.tab_drive)
        waitUntil(R.id.trial, string(R.string.trial_of, 2, 2, 1))
        tap(R.id.abort)
        attempt = 2
        waitUntil(R.id.trial, string(R.string.trial_of, 2, 2, 2))
        tap(R.id.abort)
        assertEquals(string(R.string.abort_sure), text(R.id.abort), "of the next one it is asked again")
        tap(R.id.abort)
        waitUntil("the abort") { posted.isNotEmpty() }
        assertEquals(2, posted.single().second.getInt("attempt"))
    }

    @Test
    fun `what a person decides of a trial under way is of the attempt under way`() {
        state = "running"
        attempt = 2
        pair()
        tap(R.id.tab_campaign)
        val trials = activity.get().findViewById<ListView>(R.id.trials)
        waitUntil("the trials") { trials.count == 2 }
        decide(1, BUTTON_NEUTRAL, "a bus passed", of = 2)
        waitUntil("the decision") { posted.size == 1 }
        assertEquals(listOf(2, 2), posted.single().second.let { listOf(it.getInt("trial"), it.getInt("attempt")) })
    }

    @Test
    fun `a trial that was never driven can be skipped, and nothing else`() {
        state = "loaded"
        attempt = 0
        pair()
        tap(R.id.tab_campaign)
        val trials = activity.get().findViewById<ListView>(R.id.trials)
        waitUntil("the trials") { trials.count == 2 }
        val dialog = question(1, of = null)
        val offered = listOf(BUTTON_POSITIVE, BUTTON_NEUTRAL, BUTTON_NEGATIVE).filter {
            dialog.getButton(it).visibility == View.VISIBLE
        }
        assertEquals(listOf(BUTTON_NEGATIVE), offered)
    }

    @Test
    fun `what a person decides on a trial reaches the node, with the reason`() {
        state = "loaded"
        attempt = 0
        pair()
        tap(R.id.tab_campaign)
        val trials = activity.get().findViewById<ListView>(R.id.trials)
        waitUntil("the trials") { trials.count == 2 }
        decide(0, BUTTON_POSITIVE, " a bus passed ")
        decide(0, BUTTON_NEUTRAL, "")
        decide(1, BUTTON_NEGATIVE, "the road is closed", of = null)
        waitUntil("the decisions") { posted.size == 3 }
        val told = posted.map { (path, note) ->
            assertEquals("/v1/notes", path)
            assertEquals("velocity-1", note.getString("run"))
            listOf("note", "text", "trial", "attempt").map { note.opt(it) }
        }
        assertEquals(
            listOf<List<Any?>>(
                listOf("accept", "a bus passed", 1, 1),
                listOf("repeat", "", 1, 1),
                listOf("skip", "the road is closed", 2, null), // it has no attempt yet
            ),
            told,
        )
        assertEquals(3, posted.map { (_, note) -> note.getString("id") }.toSet().size)
    }

    @Test
    fun `who leaves the question about a trial decides nothing`() {
        pair()
        tap(R.id.tab_campaign)
        val trials = activity.get().findViewById<ListView>(R.id.trials)
        waitUntil("the trials") { trials.count == 2 }
        question(0).cancel()
        pass(Duration.ofSeconds(5))
        assertEquals(emptyList(), posted.toList())
    }

    /** What is asked when the trial of a row is touched. */
    private fun question(row: Int, of: Int? = 1): AlertDialog {
        val trials = activity.get().findViewById<ListView>(R.id.trials)
        trials.performItemClick(trials.adapter.getView(row, null, trials), row, trials.getItemIdAtPosition(row))
        val dialog = ShadowAlertDialog.getLatestAlertDialog()
        val title = of?.let { string(R.string.trial_only, row + 1, it) } ?: string(R.string.decide_title, row + 1)
        assertEquals(title, shadowOf(dialog).title)
        return dialog
    }

    private fun decide(row: Int, button: Int, reason: String, of: Int? = 1) {
        val dialog = question(row, of)
        val asked = checkNotNull(dialog.window).decorView.findInput()!!
        assertEquals(string(R.string.decide_reason), asked.hint)
        asked.setText(reason)
        dialog.getButton(button).performClick()
        pass(Duration.ZERO)
        assertTrue(!dialog.isShowing)
    }

    private fun View.findInput(): EditText? = when (this) {
        is EditText -> this
        is ViewGroup -> (0 until childCount).firstNotNullOfOrNull { getChildAt(it).findInput() }
        else -> null
    }

    private companion object {
        const val WAITS = 600
        val TABS = listOf(
            R.id.tab_experiment,
            R.id.tab_drive,
            R.id.tab_campaign,
            R.id.tab_track,
            R.id.tab_node,
            R.id.tab_pair,
            R.id.open_settings,
        )
        val key by lazy { newIdentity("app") }
        val node by lazy { newIdentity("car") }
    }
}

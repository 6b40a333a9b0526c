package dev.fieldmesh.app

import android.Manifest
import android.app.Activity
import android.content.DialogInterface
import android.content.Intent
import android.content.pm.PackageManager
import android.graphics.Bitmap
import android.graphics.BitmapFactory
import android.graphics.Color
import android.media.ExifInterface
import android.media.MediaRecorder
import android.net.Uri
import android.os.ParcelFileDescriptor
import android.provider.MediaStore
import android.provider.Settings
import android.view.View
import android.widget.EditText
import android.widget.TextView
import dev.fieldmesh.core.wire.Note
import dev.fieldmesh.core.wire.WireJson
import dev.fieldmesh.device.MicrophoneRecorder
import dev.fieldmesh.device.TakenPhoto
import org.junit.After
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.Robolectric
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.Shadows.shadowOf
import org.robolectric.android.controller.ActivityController
import org.robolectric.annotation.Config
import org.robolectric.annotation.GraphicsMode
import org.robolectric.annotation.Implementation
import org.robolectric.annotation.Implements
import org.robolectric.shadows.ShadowAlertDialog
import org.robolectric.shadows.ShadowMediaRecorder
import org.robolectric.shadows.ShadowToast
import java.io.File
import java.io.FileNotFoundException
import java.io.IOException
import java.nio.file.Files
import java.time.Duration
import kotlin.io.path.Path
import kotlin.test.assertContentEquals
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertNull
import kotlin.test.assertTrue

/** Photos and voice notes, from the touch of a button to what waits for the node. */
@RunWith(RobolectricTestRunner::class)
@GraphicsMode(GraphicsMode.Mode.NATIVE)
@Config(application = TestApp::class, qualifiers = "w411dp-h891dp-port-420dpi")
class AttachTest {
    private val app get() = RuntimeEnvironment.getApplication() as TestApp
    private var activity: ActivityController<MainActivity>

    init {
        shadowOf(app.packageManager).setSystemFeature(PackageManager.FEATURE_CAMERA_ANY, true)
        shadowOf(app.packageManager).setSystemFeature(PackageManager.FEATURE_MICROPHONE, true)
        activity = open()
    }

    private fun open() = Robolectric.buildActivity(MainActivity::class.java).setup().also {
        it.get().findViewById<View>(R.id.tab_track).performClick()
    }

    @After
    fun end() {
        activity.pause().stop().destroy()
    }

    private fun tap(id: Int) = assertTrue(activity.get().findViewById<View>(id).performClick())

    private fun text(id: Int) = activity.get().findViewById<TextView>(id).text.toString()

    private fun pass(ms: Long = 0) = shadowOf(app.mainLooper).idleFor(Duration.ofMillis(ms))

    private fun grant(permission: String) = shadowOf(app).grantPermissions(permission)

    private val folder get() = File(app.noBackupFilesDir, "attachments")

    /** The files, without their notes. */
    private val waiting get() = folder.listFiles { f -> '.' !in f.name }.orEmpty().sortedBy { it.lastModified() }

    /** The notes on the shelf. */
    private fun notes(): List<Note> = app.preferences.notes.load()?.let { text ->
        WireJson.parseToJsonElement(text).let { it as kotlinx.serialization.json.JsonArray }.map {
            val note = (it as kotlinx.serialization.json.JsonObject).getValue("note")
            WireJson.decodeFromJsonElement(Note.serializer(), note)
        }
    }.orEmpty()

    /** A photo of a sensor that lies on its side: red at the left, blue at the right, and with a place in its EXIF. */
    private fun shoot(into: File) {
        val picture = Bitmap.createBitmap(4000, 3000, Bitmap.Config.ARGB_8888)
        for (x in 0 until 4000 step 10) {
            for (y in 0 until 3000 step 1500) {
                val color = if (x < 2000) Color.RED else Color.BLUE
                picture.setPixels(IntArray(15_000) { color }, 0, 10, x, y, 10, 1500)
            }
        }
        into.parentFile?.mkdirs()
        into.outputStream().use { picture.compress(Bitmap.CompressFormat.JPEG, 90, it) }
        ExifInterface(into.path).apply {
            setAttribute(ExifInterface.TAG_ORIENTATION, "${ExifInterface.ORIENTATION_ROTATE_90}")
            setAttribute(ExifInterface.TAG_GPS_LATITUDE, "26/1,40/1,0/1")
            setAttribute(ExifInterface.TAG_GPS_LATITUDE_REF, "S")
            saveAttributes()
        }
    }

    /** Where the camera app's file for what it was asked comes to lie. */
    private fun file(asked: Intent): File {
        val uri = asked.clipData!!.getItemAt(0).uri
        assertEquals(uri, asked.getParcelableExtra(MediaStore.EXTRA_OUTPUT, Uri::class.java))
        assertEquals("dev.fieldmesh.app.taken", uri.authority)
        return File(folder, uri.path!!.removeSurrounding("/", ".jpg"))
    }

    private fun type(words: String) = activity.get().findViewById<EditText>(R.id.mark_text).setText(words)

    /** The camera app is asked, and takes a photo. */
    private fun takePhoto(words: String) {
        type(words)
        tap(R.id.attach_photo)
        val asked = askedFor()
        shoot(file(asked))
        answer(asked, Activity.RESULT_OK)
    }

    private fun askedFor(): Intent = shadowOf(activity.get()).nextStartedActivityForResult.intent

    private fun answer(of: Intent, result: Int) {
        shadowOf(activity.get()).receiveResult(of, result, null)
        pass()
    }

    @Test
    fun `a photo is a mark with what was typed, of the moment of the touch, upright, small, and without its place`() {
        grant(Manifest.permission.CAMERA)
        type(" the antenna ")
        tap(R.id.attach_photo)
        val asked = askedFor()
        assertEquals(MediaStore.ACTION_IMAGE_CAPTURE, asked.action)
        assertEquals(Intent.FLAG_GRANT_READ_URI_PERMISSION or Intent.FLAG_GRANT_WRITE_URI_PERMISSION, asked.flags)
        shoot(file(asked))
        answer(asked, Activity.RESULT_OK)
        val note = notes().single()
        assertEquals("the antenna", note.text)
        assertEquals("", text(R.id.mark_text))
        val file = waiting.single()
        assertEquals(note.id, file.name)
        assertEquals(file.length().toInt(), note.attachment?.bytes)
        val kept = BitmapFactory.decodeFile(file.path)
        assertEquals(1200 to 1600, kept.width to kept.height)
        assertTrue(Color.red(kept.getPixel(600, 100)) > 200 && Color.blue(kept.getPixel(600, 1500)) > 200)
        assertNull(ExifInterface(file.path).getAttribute(ExifInterface.TAG_GPS_LATITUDE))
        assertEquals(listOf(note.id, note.id + ".json"), folder.list().orEmpty().sorted())
        assertEquals("1 photo or recording waits: it is delivered between trials.", text(R.id.attach_waiting))
    }

    @Test
    fun `a photo of a process that ended while the camera was in front is kept`() {
        grant(Manifest.permission.CAMERA)
        tap(R.id.attach_photo)
        val asked = askedFor()
        activity.pause().stop().destroy()
        app.die()
        shoot(file(asked))
        activity = open()
        pass()
        assertEquals("Photo", notes().single().text)
        assertEquals(1, waiting.size)
        activity.pause().resume()
        pass()
        assertEquals(1, notes().size)
    }

    @Test
    fun `a photo that is taken while another is being kept is another`() {
        grant(Manifest.permission.CAMERA)
        val work = mutableListOf<Runnable>().also { app.work = it }
        takePhoto("first")
        type("second")
        tap(R.id.attach_photo)
        val second = askedFor()
        work.removeFirst().run() // the first one is ready while the camera is in front
        pass()
        shoot(file(second))
        answer(second, Activity.RESULT_OK)
        work.removeFirst().run()
        pass()
        assertEquals(listOf("first", "second"), notes().map { it.text })
        assertEquals(notes().map { it.id }, waiting.map { it.name })
    }

    @Test
    fun `what was taken and not kept when the process ended is kept by the next`() {
        grant(Manifest.permission.CAMERA)
        grant(Manifest.permission.RECORD_AUDIO)
        app.work = mutableListOf()
        takePhoto("seen")
        app.spoken = byteArrayOf(1, 2, 3)
        type("heard")
        repeat(2) { tap(R.id.attach_voice) }
        tap(R.id.attach_voice) // this one is under way, and cannot be heard without its end
        app.die()
        activity = open()
        pass()
        assertEquals(setOf("seen", "heard"), notes().map { it.text }.toSet())
        assertEquals(2, waiting.size)
        assertEquals(4, folder.list().orEmpty().size)
        assertTrue(waiting.none { it.length() > 1_000_000 })
    }

    @Test
    fun `a photo for which the storage has no room is kept as it was taken, and tried again`() {
        grant(Manifest.permission.CAMERA)
        tap(R.id.attach_photo)
        val asked = askedFor()
        shoot(file(asked))
        val taken = file(asked).readBytes()
        val part = File(folder, file(asked).name + ".part").toPath()
        Files.createSymbolicLink(part, Path("/dev/full"))
        answer(asked, Activity.RESULT_OK)
        assertTrue(ShadowToast.getTextOfLatestToast().startsWith("Kept, and tried again when the app is next opened: "))
        assertContentEquals(taken, file(asked).readBytes())
        assertEquals(emptyList(), notes())
        Files.deleteIfExists(part)
        activity.pause().resume()
        pass()
        assertEquals(1, notes().size)
    }

    @Test
    fun `no photo makes no mark, and what was typed stays`() {
        grant(Manifest.permission.CAMERA)
        type("the antenna")
        tap(R.id.attach_photo)
        answer(askedFor(), Activity.RESULT_CANCELED)
        tap(R.id.attach_photo)
        answer(askedFor(), Activity.RESULT_OK)
        assertEquals("Not kept: the camera app wrote no photo", ShadowToast.getTextOfLatestToast())
        assertEquals("the antenna", text(R.id.mark_text))
        tap(R.id.attach_photo)
        val asked = askedFor()
        file(asked).writeText("no picture")
        answer(asked, Activity.RESULT_OK)
        assertEquals("Not kept: it is no photo", ShadowToast.getTextOfLatestToast())
        assertEquals(emptyList(), notes() + folder.list().orEmpty())
    }

    @Test
    fun `what was typed outlives the screen on which a permission is asked for`() {
        type("the antenna")
        tap(R.id.attach_voice)
        val asked = shadowOf(activity.get()).lastRequestedPermission
        activity = activity.recreate()
        grant(Manifest.permission.RECORD_AUDIO)
        app.spoken = byteArrayOf(1)
        val yes = intArrayOf(PackageManager.PERMISSION_GRANTED)
        activity.get().onRequestPermissionsResult(asked.requestCode, asked.requestedPermissions, yes)
        app.isHeard = false
        tap(R.id.attach_voice)
        pass()
        assertEquals("Not kept: nothing was recorded", ShadowToast.getTextOfLatestToast())
        assertEquals(emptyList(), notes() + folder.list().orEmpty())
        app.isHeard = true
        repeat(2) { tap(R.id.attach_voice) }
        pass()
        assertEquals(listOf("the antenna"), notes().map { it.text })
        assertEquals("", text(R.id.mark_text))
    }

    /** The microphone of a phone on which a call is under way. */
    @Implements(MediaRecorder::class)
    class BusyMicrophone : ShadowMediaRecorder() {
        @Implementation
        @Suppress("TooGenericExceptionThrown") // as MediaRecorder does
        override fun setAudioSource(source: Int): Unit = throw RuntimeException("setAudioSource failed.")

        @Implementation
        override fun release() {
            released++
            super.release()
        }

        companion object {
            var released = 0
        }
    }

    @Test
    @Config(shadows = [BusyMicrophone::class])
    fun `the app says that a call has the microphone, and gives it back`() {
        val told = assertFailsWith<IOException> { MicrophoneRecorder().begin(File(folder, "speech")) {} }
        assertEquals("record: setAudioSource failed.", told.message)
        assertEquals(1, BusyMicrophone.released)
    }

    @Test
    fun `without permission it is said, with the way to its setting, and nothing is begun`() {
        for ((button, permission, words) in listOf(
            Triple(R.id.attach_photo, Manifest.permission.CAMERA, R.string.attach_camera_denied),
            Triple(R.id.attach_voice, Manifest.permission.RECORD_AUDIO, R.string.attach_voice_denied),
        )) {
            tap(button)
            val asked = shadowOf(activity.get()).lastRequestedPermission
            assertEquals(listOf(permission), asked.requestedPermissions.toList())
            val no = intArrayOf(PackageManager.PERMISSION_DENIED)
            activity.get().onRequestPermissionsResult(asked.requestCode, asked.requestedPermissions, no)
            val dialog = ShadowAlertDialog.getLatestAlertDialog()
            assertEquals(app.getString(words), shadowOf(dialog).message)
            dialog.getButton(DialogInterface.BUTTON_POSITIVE).performClick()
            pass()
            assertEquals(Settings.ACTION_APPLICATION_DETAILS_SETTINGS, shadowOf(app).nextStartedActivity.action)
        }
        val started = generateSequence { shadowOf(activity.get()).nextStartedActivityForResult }
        assertTrue(started.none { it.intent.action == MediaStore.ACTION_IMAGE_CAPTURE })
        assertEquals(emptyList(), notes())
    }

    @Test
    fun `speech is recorded until the button, the minute's end, a fault, or another app ends it`() {
        grant(Manifest.permission.RECORD_AUDIO)
        val ends = listOf<() -> Unit>(
            { tap(R.id.attach_voice) },
            { pass(48_000) },
            { app.stuck() },
            { activity.pause().stop() },
        )
        ends.forEachIndexed { i, end ->
            app.spoken = byteArrayOf(1, 2, i.toByte())
            tap(R.id.attach_voice)
            pass(12_500)
            assertEquals("Stop, 12 s", text(R.id.attach_voice))
            end()
            pass()
            assertEquals("audio/mp4", notes()[i].attachment?.mediaType)
            assertEquals(i + 1, waiting.size)
        }
        activity.start().resume()
        pass()
        assertEquals("Voice", text(R.id.attach_voice))
        app.spoken = null
        tap(R.id.attach_voice)
        pass()
        assertEquals("Not kept: another app has the microphone", ShadowToast.getTextOfLatestToast())
    }

    @Test
    fun `the camera app may write the file that it is asked for, while it is, and no other`() {
        grant(Manifest.permission.CAMERA)
        val provider = Robolectric.setupContentProvider(TakenPhoto::class.java, "dev.fieldmesh.app.taken")
        fun open(path: String) = provider.openFile(Uri.parse("content://dev.fieldmesh.app.taken/$path"), "w")
        tap(R.id.attach_photo)
        val asked = askedFor()
        val name = "${file(asked).name}.jpg"
        ParcelFileDescriptor.AutoCloseOutputStream(open(name)).use { it.write(1) }
        assertEquals(1, file(asked).length())
        for (other in listOf("../attachments/$name", "other.jpg", file(asked).name, "")) {
            assertFailsWith<FileNotFoundException>(other) { open(other) }
        }
        answer(asked, Activity.RESULT_CANCELED)
        assertFailsWith<FileNotFoundException> { open(name) }
    }
}
